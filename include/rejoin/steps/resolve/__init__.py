"""resolve: responses and changed left rows become net changes of an output.

``step`` does it; ``statements`` are what all kinds of joins share (those of a kind are in ``joins``). ``old_rows`` says which way the rows before the run
are got, and makes them once more.
"""
