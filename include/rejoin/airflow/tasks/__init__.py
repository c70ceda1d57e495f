"""What the tasks of a DAG do, on whichever machine they run.

``stage`` does a step; ``command`` runs a command of rejoin; both can go through ``spark_submit``. ``dag_run`` and ``retry`` say which run of rejoin a task
belongs to and whether it is tried again; ``approval`` asks a person. ``trigger_form`` reads what a person has asked for. Nothing here is needed to parse a DAG
but the classes of the tasks.
"""
