"""Who runs the statements: this process by DuckDB, or Spark. Start with ``relation``: what a relation and an engine are.

``choice`` and ``placement`` decide which engine does a step. DuckDB: ``duckdb_engine``, with relations that are ``deferred_relation`` or
``counted_relation``, ``landed_rows`` and what ``key_ranges`` cuts; ``duckdb_connection`` and ``object_stores`` open its databases. Spark: ``spark_engine``, ``spark_types``, ``spark_connect``.
``arrow_tables`` fits rows to a schema; ``iceberg_nulls`` puts a reader of PyIceberg right. Knows statements and plans, neither lakes nor runs.
"""
