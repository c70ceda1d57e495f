"""Where files are and how their bytes are read: ``files``."""
