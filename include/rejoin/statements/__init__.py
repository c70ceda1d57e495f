"""Statements that all kinds of joins share, as SQL text made from the plan alone. Pure: no reads, writes, clock or random numbers.

``dialect`` has what Spark SQL and DuckDB say differently; ``relations`` the inputs that statements name; ``own_columns`` rejoin's columns; ``value_hash`` and
``provenance`` the hashes of ADR 0003; ``load_reference`` how the feed of an output begins.
"""
