"""Statements that Spark SQL runs: what DuckDB cannot do as Spark does. ``engine`` is the engine, ``types`` translates types, ``connect`` is for Spark Connect."""
