"""What the steps of a run share: they read it, and none of them owns it.

Start with ``work``: the engine, the readers and the writer of one attempt. ``facts`` knows what earlier steps have counted; ``refresh`` decides between
following the changes and recomputing; ``uncomputable_rows`` finds the rows for which an expression has no value; ``new_output`` makes the new state of an
output; ``progress`` is told how far the work is. Knows the lake and the engines, no step.
"""
