"""What a record says: a row of a snapshot (``snapshot``, ``rows``, ``csv_lines``, ``parquet_rows``), or a change of a dialect (``lines``, ``debezium``).
``registry`` knows the dialects.
"""
