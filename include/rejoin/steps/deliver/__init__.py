"""deliver: a sink catches up with the committed runs of its output. ``step`` is called by commands and schedulers, ``catch_up`` does an attempt."""
