"""Iceberg's metadata, by PyIceberg. All use of its private parts is here.

Start with ``refs`` (branches and tags) and ``commits`` (small writes); ``snapshot_producers`` makes snapshots that PyIceberg does not; ``snapshot_files`` and
``column_bounds`` read manifests; ``schema_evolution``, ``table_schemas`` and ``plan_columns`` are about columns; ``data_file`` and ``file_io`` write and read
files; ``sql_catalog`` is the catalog.
"""
