"""Where IO meets the stages: what a step reads, the stage it calls, what it writes and counts.

``step`` does a step where it belongs, which may be one task of a Spark job (``task``, ``size``). ``attempt`` is one try, with what ``work`` says;
``facts`` knows what earlier steps of the run have counted. A module does each group of stages: ``ingesting`` (with ``drift``, ``texts`` and, its second
half, ``storing``), ``joining`` (subscribe and respond), ``resolving`` (with ``refresh``), ``validating``. They share ``output`` (a new state of an output),
``judging`` (expectations) and ``sifting`` (rows without a value). ``checks`` and ``selfcheck`` are what a run checks of itself.
"""

from rejoin.steps.run.attempt import Start
from rejoin.steps.run.placed_step import Doing
from rejoin.steps.run.spark_task import called

__all__ = ["Doing", "Start", "called"]
