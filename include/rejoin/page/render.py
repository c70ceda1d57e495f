"""From data to HTML, by the templates beside this file. Everything that comes from data is escaped. Pure: the present is an argument."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rejoin import owner as owner_text
from rejoin.lake.history import RunLine
from rejoin.lake.look import Newest, Refused
from rejoin.page import graph as picture
from rejoin.page import words
from rejoin.page.model import RELEASED, Kind, RunPage, TablePage, TopologyLine, TopologyPage

_HERE = Path(__file__).parent
STATIC = _HERE / "static"

REFUSALS = 50
"""Refused records on a page."""


@dataclass(frozen=True)
class Place:
    """Where the pages are: the path of the first one, the path of Airflow's own UI (both without a slash at the end), and the present."""

    root: str
    airflow: str
    now: float


def overview(place: Place, lake: str, lines: list[TopologyLine]) -> str:
    """All topologies of a lake; or what to do when there is none."""
    return _page("overview.html", place, title="rejoin", lake=lake, lines=lines)


def topology(place: Place, page: TopologyPage, dag: str | None) -> str:
    """A topology: graph, freshness, tables, runs. ``dag``: the DAG that runs it, if one has."""
    drawn = picture.graph(page.plan, page.tables)
    return _page("topology.html", place, title=page.name, page=page, graph=drawn, box=picture, dag=dag)


def run(place: Place, page: RunPage) -> str:
    """One run, step by step."""
    return _page("run.html", place, title=f"{page.run.topology} run {page.run.number}", page=page)


def table(place: Place, page: TablePage) -> str:
    """One table, and a key of it."""
    return _page("table.html", place, title=f"{page.topology} {page.table.name}", page=page, shown=REFUSALS)


def message(place: Place, title: str, text: str, link: tuple[str, str] | None = None) -> str:
    """A sentence instead of a page, and perhaps where to go: (address, words)."""
    return _page("message.html", place, title=title, text=text, link=link)


def _page(template: str, place: Place, **values: Any) -> str:
    return _ENVIRONMENT.get_template(template).render(root=place.root, airflow=place.airflow, now=place.now, **values)


def _state(line: RunLine, now: float) -> str:
    """What is the matter with a run, in a few words."""
    if line.state != "open":
        return line.state
    if line.standing == "failed":
        return "failed, may go on"
    return "running" if line.lease_until > now else "open, its owner is silent"


def _total(line: RunLine, verb: str, count: str) -> int | None:
    """A count summed over all steps of a verb; None where no such step has ended."""
    found = [s.record.counts[count] for s in line.steps if s.record.step.startswith(f"{verb}.") and count in s.record.counts]
    return sum(found) if found else None


def _jobs(line: RunLine) -> int | None:
    """Spark jobs of a run; None where a session could not tell."""
    jobs = [s.record.jobs for s in line.steps]
    return None if any(j is None for j in jobs) or not jobs else sum(j or 0 for j in jobs)


def _environment() -> Environment:
    made = Environment(loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    made.filters |= {
        "number": words.number,
        "seconds": words.seconds,
        "bytes": words.size,
        "moment": words.moment,
        "counts": words.counts,
        "value": words.value,
        "cut_off": words.cut_off,
        "part": lambda text: quote(str(text), safe=""),
    }
    made.globals |= {
        "age": words.age,
        "state": _state,
        "total": _total,
        "jobs": _jobs,
        "dag_run": owner_text.dag_run,
        "Kind": Kind,
        "RELEASED": RELEASED,
    }
    made.tests |= {"refused": lambda v: isinstance(v, Refused), "read": lambda v: isinstance(v, Newest)}
    return made


_ENVIRONMENT = _environment()
