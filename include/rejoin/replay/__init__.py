"""``rejoin replay``: ``run`` sends ``scenarios`` of events through the real engine; ``stream_joins`` and ``table_joins`` declare the joins."""
