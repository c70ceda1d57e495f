"""Two tables by their primary keys. ``changes`` finds the results that can change, ``statements`` are their SQL."""
