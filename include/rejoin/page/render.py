"""From data to HTML, by the templates beside this file. Everything that comes from data is escaped. Pure: the present is an argument."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rejoin.lake.ledger import run_owner as owner_text
from rejoin.lake.ledger.history import RunLine
from rejoin.lake.ledger.runs import RunState
from rejoin.lake.query.bounded_looks import Newest, Refused
from rejoin.page import engines, formats, plan_picture, record_path, run_picture
from rejoin.page.model import RELEASED, Kind, RunPage, SearchPage, TablePage, TopologyLine, TopologyPage
from rejoin.page.sparkline import sparkline
from rejoin.report.history import many
from rejoin.report.samples import RowChange

_HERE = Path(__file__).parent
STATIC = _HERE / "static"

REFUSALS = 50
"""Refused records on a page."""


@dataclass(frozen=True)
class Site:
    """Where the pages are: the path of the first one, the path of Airflow's own UI (both without a slash at the end), and the present."""

    root: str
    airflow: str
    now: float


def overview(site: Site, lake: str, lines: list[TopologyLine]) -> str:
    """All topologies of a lake; or what to do when there is none."""
    return _page("overview.html", site, title="rejoin", lake=lake, lines=lines)


def topology(site: Site, page: TopologyPage, dag: str | None) -> str:
    """A topology: how it is, graph, runs, tables. ``dag``: the DAG that runs it, if one has."""
    drawn, spark = plan_picture.graph(page.plan, page.tables), sparkline(page.status.paces)
    return _page("topology.html", site, title=page.name, page=page, graph=drawn, spark=spark, dag=dag)


def run(site: Site, page: RunPage) -> str:
    """One run: its graph, what failed, what it changed, step by step."""
    drawn, around = run_picture.picture(page, site.now), run_picture.around(page, site.now)
    title = f"{page.run.topology} run {page.run.number}"
    return _page("run.html", site, title=title, page=page, graph=drawn, around=around, broken=run_picture.broken(page))


def table(site: Site, page: TablePage) -> str:
    """One table, and a key of it."""
    why = page.key_view.why if page.key_view else None
    traced: dict[str, Any] = {"untold": why} if isinstance(why, str) else {}
    if why is not None and not isinstance(why, str):
        traced = {
            "untold": "",
            "drawn": record_path.picture(why, page.visible),
            "reasons": record_path.reasons(why),
            "text": record_path.text(why),
        }
    return _page("table.html", site, title=f"{page.topology} {page.table.name}", page=page, shown=REFUSALS, why=traced)


def search(site: Site, page: SearchPage) -> str:
    """What a search for a key has found."""
    return _page("search.html", site, title=f"{page.topology} {page.text}", page=page)


def message(site: Site, title: str, text: str, link: tuple[str, str] | None = None) -> str:
    """A sentence instead of a page, and perhaps where to go: (address, words)."""
    return _page("message.html", site, title=title, text=text, link=link)


def _page(template: str, site: Site, **values: Any) -> str:
    return _ENVIRONMENT.get_template(template).render(root=site.root, airflow=site.airflow, now=site.now, **values)


def _state(line: RunLine, now: float) -> str:
    """What is the matter with a run, in a few words."""
    if line.state != RunState.OPEN:
        return line.state
    if line.standing == "failed":
        return "failed, may go on"
    return "running" if line.lease_until > now else "open, its owner is silent"


def _total(line: RunLine, verb: str, count: str) -> int | None:
    """A count summed over all steps of a verb; None where no such step has ended."""
    found = [s.record.counts[count] for s in line.steps if s.record.verb == verb and count in s.record.counts]
    return sum(found) if found else None


def _sides(changes: Iterable[RowChange]) -> tuple[str, ...]:
    """The sides that some of the changes have: before, after."""
    every = list(changes)
    return tuple(side for side in ("before", "after") if any(getattr(c, side) is not None for c in every))


def _made_by(owner: str) -> str:
    """An owner that is no DAG run, as people call it."""
    return "command line" if owner_text.is_process(owner) else owner


def _environment() -> Environment:
    made = Environment(loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    made.filters |= {
        "number": formats.number,
        "seconds": formats.seconds,
        "span": formats.span,
        "bytes": formats.size,
        "moment": formats.moment,
        "counts": formats.counts,
        "value": formats.value,
        "cut_off": formats.cut_off,
        "path": quote,
        "part": lambda text: quote(str(text), safe=""),
    }
    made.globals |= {
        "age": formats.age,
        "state": _state,
        "total": _total,
        "engine": engines.of_step,
        "engines": engines.of_run,
        "sides_of": _sides,
        "step_state": run_picture.state_of,
        "live": run_picture.live,
        "last_change": plan_picture.last_change,
        "net": plan_picture.net,
        "STATES": run_picture.WORDS,
        "dag_run": owner_text.dag_run,
        "made_by": _made_by,
        "many": many,
        "Kind": Kind,
        "RELEASED": RELEASED,
    }
    made.tests |= {
        "refused": lambda v: isinstance(v, Refused),
        "read": lambda v: isinstance(v, Newest),
        "bookkeeping": lambda name: name.startswith("_"),
    }
    return made


_ENVIRONMENT = _environment()
