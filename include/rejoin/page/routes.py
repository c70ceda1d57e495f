"""The pages behind Airflow's login: which address shows what, and who may see it. The only module that knows Airflow and FastAPI."""

import logging
import os
import time
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import quote

from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends, FastAPI, HTTPException, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException as AnyHTTPException

from rejoin.errors import RejoinError, RunUnknown, SnapshotExpired, TransientError, UnknownTable
from rejoin.failures.engine_errors import named, tracing
from rejoin.operate.freshness import fresh_within
from rejoin.page import airflow_tasks, render
from rejoin.page.gather import Lake

PREFIX = "/rejoin"
"""Where Airflow mounts the pages."""

_LOG = logging.getLogger(__name__)

HEADERS = {
    # Nothing from outside, nothing inline; and no frame around the pages but Airflow's own.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'self'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}

DOCS_POLICY = "sandbox; default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'self'"
"""Great Expectations writes styles into its pages, and scripts of other sites that these can be read without."""

_STATUS: tuple[tuple[type[RejoinError], int], ...] = ((UnknownTable, 404), (RunUnknown, 404), (SnapshotExpired, 410), (TransientError, 503))

_Name = Annotated[str, Path(max_length=250)]
_File = Annotated[str, Path(max_length=1000)]
_Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
_Keys = Annotated[list[Annotated[str, Query(max_length=1000)]] | None, Query()]

app = FastAPI(title="rejoin", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(requires_access_dag(method="GET"))])
"""Every route needs a user of Airflow who may read DAGs; a topology needs one who may read the DAG that runs it."""


@app.get("/")
def overview(request: Request, user: GetUserDep) -> Response:
    """All topologies that the user may see."""
    lake = _lake()
    lines = [lake.line(t) for t in lake.topologies() if _may_read(request, user, lake.dag_of(t) or t)]
    return _html(render.overview(_site(request), os.path.realpath(lake.location), lines))


@app.get("/t/{topology}")
def topology(
    request: Request, user: GetUserDep, topology: _Name, before: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None
) -> Response:
    """A topology: graph, runs, freshness, tables."""
    lake = _permitted(request, user, topology)
    return _html(render.topology(_site(request), lake.topology(topology, before, fresh_within().total_seconds()), lake.dag_of(topology)))


@app.get("/t/{topology}/runs/{number}")
def run(request: Request, user: GetUserDep, topology: _Name, number: _Number) -> Response:
    """One run, step by step; ``#<step>`` is a step."""
    return _html(render.run(_site(request), _permitted(request, user, topology).run(topology, number)))


@app.get("/t/{topology}/tables/{table}")
def table(request: Request, user: GetUserDep, topology: _Name, table: _Name, key: _Keys = None) -> Response:
    """One table; with ``key`` (once a key column) the row of a key and its history."""
    return _html(
        render.table(
            _site(request),
            _permitted(request, user, topology).table(topology, table, tuple(key or ()), os.environ.get("REJOIN_ROOT", ".")),
        )
    )


@app.get("/t/{topology}/search")
def search(request: Request, user: GetUserDep, topology: _Name, key: Annotated[str, Query(min_length=1, max_length=1000)]) -> Response:
    """Where a text is, or begins, a key."""
    return _html(render.search(_site(request), _permitted(request, user, topology).search(topology, key)))


@app.get("/t/{topology}/runs/{number}/docs/{of}/{file:path}")
def docs(request: Request, user: GetUserDep, topology: _Name, number: _Number, of: _Name, file: _File) -> Response:
    """A file of the Data Docs of a table or output of a run."""
    directory = _permitted(request, user, topology).docs(topology, number, of)
    wanted = None if directory is None else (directory / file).resolve()
    if directory is None or wanted is None or not wanted.is_relative_to(directory.resolve()) or not wanted.is_file():
        raise HTTPException(404, "no such file")
    return FileResponse(wanted, headers=HEADERS | {"Content-Security-Policy": DOCS_POLICY})


@app.get("/dag/{dag_id}")
def of_dag(request: Request, dag_id: _Name) -> Response:
    """The topology that a DAG runs."""
    found = _lake().of_dag(dag_id)
    if found is None:
        return _no_run(request, f"DAG {dag_id} has made no run of a topology in this lake.", 404)
    return RedirectResponse(f"{_site(request).root}/t/{quote(found, safe='')}", headers=HEADERS)


@app.get("/dag/{dag_id}/run/{dag_run_id}")
def of_dag_run(request: Request, dag_id: _Name, dag_run_id: _Name, task: Annotated[str, Query(max_length=250)] = "") -> Response:
    """The run that a DAG run made; with ``task`` the step that this task does."""
    lake = _lake()
    found = lake.of_dag_run(dag_id, dag_run_id)
    if found is None:
        return _no_run(request, f"DAG run {dag_run_id} of {dag_id} has opened no run of a topology (yet).", 404)
    name, made = found
    step = airflow_tasks.step_of_task(task, lake.step_ids(name, made.number)) if task else None
    fragment = f"#{quote(step)}" if step else ""
    return RedirectResponse(f"{_site(request).root}/t/{quote(name, safe='')}/runs/{made.number}{fragment}", headers=HEADERS)


@app.get("/static/{name}")
def static(name: _Name) -> Response:
    """The style sheet and the script."""
    if name not in {"page.css", "page.js"}:
        raise HTTPException(404, "no such file")
    return FileResponse(render.STATIC / name, headers=HEADERS)


# --- refusals and mistakes --------------------------------------------------------------------------------------------


@app.exception_handler(AnyHTTPException)
async def _refused(request: Request, error: AnyHTTPException) -> Response:
    """Not logged in, not permitted, no such page."""
    site = _site(request)
    if error.status_code == 401:
        back = f"{site.airflow}/api/v2/auth/login?next={quote(str(request.url.path), safe='')}"
        text, link = "This page is for users of Airflow.", (back, "Log in")
        return _html(render.message(site, "Please log in", text, link), 401, error.headers)
    if error.status_code == 403:
        return _html(render.message(site, "Not permitted", "Your role in Airflow may not read the DAG that this page is about."), 403)
    return _html(render.message(site, "Not found", "There is no such page."), error.status_code, error.headers)


@app.exception_handler(RequestValidationError)
async def _mistyped(request: Request, _error: RequestValidationError) -> Response:
    """A number that is none, or too long a text."""
    return _html(
        render.message(_site(request), "Not found", "Part of this address is no name, number or key that could be looked up."), 400
    )


@app.exception_handler(RejoinError)
async def _coded(request: Request, error: RejoinError) -> Response:
    """One of rejoin's own errors: its message says what to do."""
    status = next((s for kind, s in _STATUS if isinstance(error, kind)), 500)
    return _html(render.message(_site(request), error.code, str(error)), status)


@app.exception_handler(Exception)
async def _unexpected(request: Request, error: Exception) -> Response:
    """Anything else, in our words: the engine's may hold row values that this page does not show."""
    found = named(error, f"page {request.url.path}")
    _LOG.error("%s", found, exc_info=error if tracing() else None)
    return _html(render.message(_site(request), found.code, str(found)), 500)


# --- helpers ----------------------------------------------------------------------------------------------------------


def _lake() -> Lake:
    return Lake(os.environ.get("REJOIN_LAKE", "lake"))


def _permitted(request: Request, user: GetUserDep, topology: str) -> Lake:
    """The lake, if the topology is known and the user may read the DAG that runs it (or would: a DAG of its name)."""
    lake = _lake()
    known = topology in lake.topologies()
    requires_access_dag(method="GET", param_dag_id=(lake.dag_of(topology) if known else None) or topology)(request, user)
    if not known:  # said without the names of the others, which the overview shows to those who may see them
        raise UnknownTable(f"the lake has no topology {topology!r}", next_step="look at the overview")
    return lake


def _may_read(request: Request, user: GetUserDep, dag: str) -> bool:
    try:
        requires_access_dag(method="GET", param_dag_id=dag)(request, user)
    except HTTPException:
        return False
    return True


def _site(request: Request) -> render.Site:
    root = str(request.scope.get("root_path", PREFIX))
    return render.Site(root, root.removesuffix(PREFIX), time.time())


def _no_run(request: Request, text: str, status: int) -> Response:
    site = _site(request)
    return _html(render.message(site, "No run here", text, (f"{site.root}/", "All topologies")), status)


def _html(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return HTMLResponse(text, status, {**(headers or {}), **HEADERS})
