"""What installed packages add by entry points: ``join_kinds`` and ``dialects``."""
