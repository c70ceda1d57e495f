"""A stream with a table, as of event time or of the run. ``changes`` finds the results that can change, ``statements`` are their SQL."""
