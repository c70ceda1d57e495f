"""Changes of PostgreSQL's tables -> files of change events: the only code that reads PostgreSQL's log.

Begin with ``capture``. ``tables`` says what a plan wants captured, ``server`` prepares the database, ``rows`` reads tables as they are now, ``stream`` follows
the log, whose messages ``pgoutput`` reads; ``catalog`` says which tables there are; ``envelope`` says how a change is written, ``landing`` is where. What was captured is told by the files alone:
the name of the newest is the position in the log up to which a table is whole.
"""
