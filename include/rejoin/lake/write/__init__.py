"""What an attempt writes, each to a branch of its own: ``writer``; ``output_changes`` rewrites an output's files."""
