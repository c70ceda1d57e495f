"""Expressions and queries of users: ``syntax`` and ``expressions`` read and check them, ``functions`` and ``types`` say which there are.

``typing`` gives every expression its type by Spark's rules, ``portable`` prints it for DuckDB where the results are equal. ``defining_query`` is the
SQL that an output has to equal.
"""
