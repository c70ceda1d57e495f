"""Who runs the statements: this process by DuckDB, tasks of Spark by DuckDB, or Spark SQL. Start with ``relation``: what a relation and an engine are.

``choice`` and ``placement`` decide which engine does a step. DuckDB: ``duckdb_engine``, with relations that are ``deferred_relation`` or
``counted_relation``, ``landed_rows`` and what ``key_ranges`` cuts; ``duckdb_connection`` and ``object_stores`` open its databases; ``task_engine`` sends ranges
to tasks. Room ``spark``: Spark SQL. ``arrow_tables`` fits rows to a schema; ``iceberg_nulls`` puts a reader of PyIceberg right. Knows statements and plans, neither lakes nor runs.
"""
