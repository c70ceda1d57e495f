"""Groups of the rows of a table or node. ``changes`` finds the groups that can change, ``statements`` are their SQL."""
