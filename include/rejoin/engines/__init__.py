"""Who runs the statements of the stages: this process (``columnar``) or Spark (``spark``). Both give the same rows. ``placement`` decides."""

ENGINES = ("auto", "local", "spark")
"""What a lake's file, a command or ``REJOIN_ENGINE`` may ask for."""
