"""Where IO meets the stages: what a step reads, the stage it calls, what it writes and counts.

``attempt`` dispatches the steps, ``facts`` knows what earlier steps of the run have counted, and there is one module for each group of
stages: ``ingesting`` (and ``storing``), ``joining`` (subscribe and respond), ``resolving``.
"""

from rejoin.run.attempt import Attempt, Start
from rejoin.run.step import Doing
from rejoin.run.task import called
from rejoin.run.work import Outcome

__all__ = ["Attempt", "Doing", "Outcome", "Start", "called"]
