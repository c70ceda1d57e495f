"""The steps of a run, a folder for each verb, in this order: ``ingest``, ``subscribe``, ``respond``, ``resolve``, ``validate``, ``publish``, ``deliver``.

In each, ``step`` reads what is needed, runs the ``statements``, writes and counts. ``run`` is what orders them: start with ``run.topology``, which opens a run and cuts
its input, and ``run.attempt``, which calls a step. Steps know ``joins``, ``context``, ``lake`` and ``engines``.
"""
