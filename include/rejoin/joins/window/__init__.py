"""Two streams within a time. ``changes`` finds the results that can change, ``statements`` are their SQL."""
