"""Who runs the statements of the stages: this process (``columnar``) or Spark (``spark``). Both give the same rows."""
