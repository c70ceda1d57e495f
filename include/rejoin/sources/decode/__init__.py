"""Values and lines of any format as columns of events: one by one (``values``, ``record_runs``), by columns (``column_values``), or by DuckDB (``line_shape``, ``proven_lines``, ``sql_values``)."""
