"""What ``to_dag`` was given for the DAG's tasks, checked: Airflow leaves out a misspelt name in silence, and notices a wrong value hours later."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from difflib import get_close_matches
from inspect import signature
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseOperator

from rejoin.airflow.tasks.retry import RetryByError
from rejoin.errors import TopologyFileError

UNSAID: Any = object()
"""An argument that was not given, where None has a meaning."""
DEFAULTS: dict[str, Any] = {"retries": 4, "retry_delay": timedelta(seconds=15), "execution_timeout": timedelta(hours=6)}
"""Of every task, unless ``default_args`` or an argument says otherwise."""
RUN_TIMEOUT = timedelta(hours=24)
"""Longer than a run waits for another one (``dag.WAIT_AT_MOST``), and as long again for its work."""

_OURS = {
    *("self", "kwargs", "task_id", "dag", "task_group", "default_args", "params", "inlets", "outlets", "doc_md", "trigger_rule"),
    *("retry_policy", "retry_exponential_backoff", "max_retry_delay", "multiple_outputs", "map_index_template"),
    *("application", "application_args", "conn_id", "name", "env_vars", "properties_file"),
}
"""What rejoin sets on its tasks itself."""


def _name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _duration(value: Any) -> bool:
    return isinstance(value, timedelta) and value > timedelta(0)


_EXPECTED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "owner": ("a text", _name),
    "pool": ("the name of a pool", _name),
    "queue": ("the name of a queue", _name),
    "retries": ("a whole number from 0", lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 0),
    "retry_delay": ("a timedelta above zero", _duration),
    "execution_timeout": ("a timedelta above zero, or None", lambda v: v is None or _duration(v)),
    "dagrun_timeout": ("a timedelta above zero, or None", lambda v: v is None or _duration(v)),
    "deadline": ("a timedelta above zero, or None", lambda v: v is None or _duration(v)),
    "tags": ("a list of texts", lambda v: not isinstance(v, str) and all(map(_name, v))),
    "default_args": ("a dict", lambda v: isinstance(v, Mapping)),
}


def checked(topology: str, **arguments: Any) -> None:
    """Looks at the arguments of ``to_dag`` and the like-named entries of ``default_args``; what was not said is left out.

    Raises:
        TopologyFileError: one of them has a value that Airflow would stumble over.
    """
    for name, value in arguments.items():
        expected, fits = _EXPECTED.get(name, ("", lambda _: True))
        if value is not UNSAID and not fits(value):
            raise TopologyFileError(
                f"to_dag of topology {topology!r}: {name} is {value!r}", expected=expected, next_step="correct the call in the DAG file"
            )


def task_defaults(topology: str, default_args: Mapping[str, Any], **said: Any) -> dict[str, Any]:
    """The ``default_args`` of the DAG: an argument of ``to_dag`` goes before ``default_args``, these before ours.

    Raises:
        TopologyFileError: ``default_args`` has a name that no task takes, or one that rejoin sets itself, or a wrong value.
    """
    checked(topology, default_args=default_args, **said)
    known = {*signature(BaseOperator.__init__).parameters, *signature(SparkSubmitOperator.__init__).parameters} - _OURS
    for name in default_args:
        if name not in known:
            why = "is set by rejoin" if name in _OURS else "is no argument of a task"
            near = get_close_matches(str(name), sorted(known), 1)
            raise TopologyFileError(
                f"to_dag of topology {topology!r}: {name!r} of default_args {why}",
                expected=f"arguments of Airflow's operators{f'; did you mean {near[0]!r}?' if near else ''}",
                next_step="correct the call in the DAG file",
            )
    checked(topology, **default_args)
    made = DEFAULTS | dict(default_args) | {name: value for name, value in said.items() if value is not UNSAID}
    return made | {"retry_policy": RetryByError(made["retries"], made["retry_delay"])}
