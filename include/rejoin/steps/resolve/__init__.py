"""resolve: responses and changed left rows become net changes of an output.

``step`` does it; ``statements`` are what all kinds of joins share (those of a kind are in ``joins``). ``old_rows`` makes the rows before the run once more,
``right_rows`` looks up right rows that nobody has told.
"""
