"""Names of rejoin's own columns. Apart from ``frames``, so that reading a table's metadata does not load Spark."""

HASH = "_hash"
RUN = "_run"
