"""Pictures for the README, of a running Airflow: rejoin's page, light and dark, and the graph of a DAG.

    REJOIN_PASSWORD=... python docs/pictures.py --url http://127.0.0.1:8080 --user admin --dag flights

Needs Debian's chromium and chromium-driver (``.ci/run`` installs them). Nothing is changed in Airflow.
"""

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import click
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.wait import WebDriverWait

LAPTOP = (1280, 720)
PATIENCE = 60.0
"""Seconds until a page has to show what it should: the first one loads all of Airflow's UI on a busy machine."""
LARGEST = 200_000
"""Bytes that a picture may have."""

QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-device-scale-factor=1",
    f"--window-size={LAPTOP[0]},{LAPTOP[1]}",
)


@contextmanager
def browser(*, dark: bool = False) -> Iterator[WebDriver]:
    """A headless Chromium with a profile of its own, as large as a laptop's screen; it keeps a log of all requests."""
    binary, driver_binary = shutil.which("chromium"), shutil.which("chromedriver")
    if not binary or not driver_binary:
        raise FileNotFoundError("chromium is not installed: apt-get install chromium chromium-driver (as .ci/run does)")
    with tempfile.TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = binary
        for argument in (*QUIET, f"--user-data-dir={profile}"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_binary))
        try:
            width, height = LAPTOP
            driver.execute_cdp_cmd(
                "Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            )
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
            yield driver
        finally:
            driver.quit()


def log_in(driver: WebDriver, url: str, user: str, password: str) -> None:
    """Fills in the login form of Airflow's simple auth manager."""
    driver.get(url)
    wait_for(driver, lambda: driver.find_elements(By.NAME, "password"), "the login form")
    driver.find_element(By.NAME, "username").send_keys(user)
    driver.find_element(By.NAME, "password").send_keys(password)
    driver.find_element(By.CSS_SELECTOR, "button[type=submit]").click()
    wait_for(driver, lambda: not driver.find_elements(By.NAME, "password") and driver.get_cookie("_token"), "the end of the login")


def open_embedded(driver: WebDriver, url: str, path: str, text: str) -> None:
    """Opens a page of Airflow's UI and goes into the frame that holds rejoin's page, when that shows ``text``."""
    driver.get(url + path)
    wait_for(driver, lambda: driver.find_elements(By.CSS_SELECTOR, "iframe[title=rejoin]"), f"rejoin's frame in {path}")
    driver.switch_to.frame(driver.find_element(By.CSS_SELECTOR, "iframe[title=rejoin]"))
    wait_for(driver, lambda: text in shown(driver), f"{text!r} in the frame of {path}")


def shown(driver: WebDriver) -> str:
    """All text of the page or frame that can be seen, an SVG's included."""
    return str(driver.execute_script("return document.body ? document.body.innerText : ''"))


def wait_for(driver: WebDriver, condition, what: str):  # type: ignore[no-untyped-def]  # whatever the condition returns
    """Waits until the condition holds. A page that looks again by itself may replace an element between finding and reading it: then once more."""
    waiting = WebDriverWait(driver, PATIENCE, poll_frequency=0.2, ignored_exceptions=[StaleElementReferenceException])
    return waiting.until(lambda _: condition(), f"waited {PATIENCE:.0f} s for {what}, at {driver.current_url}")


def requested(driver: WebDriver) -> list[str]:
    """Addresses of all requests to servers since the last call; Chromium's own pages are none, nor is what a page's policy has kept from being sent."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    kept = {
        e["params"]["requestId"] for e in events if e["method"] == "Network.loadingFailed" and e["params"].get("blockedReason") == "csp"
    }
    sent = (e["params"] for e in events if e["method"] == "Network.requestWillBeSent")
    urls = (p["request"]["url"] for p in sent if p["requestId"] not in kept)
    return [u for u in urls if u.split(":")[0] in ("http", "https", "ws", "wss")]


def save(driver: WebDriver, path: Path) -> None:
    """A picture of the window."""
    driver.switch_to.default_content()
    settled(driver)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(driver.get_screenshot_as_png())
    assert path.stat().st_size < LARGEST, f"{path} has {path.stat().st_size:,} bytes; a README's picture has less than {LARGEST:,}"


def settled(driver: WebDriver) -> None:
    """Waits until two looks half a second apart show the same: graphs and tabs move into their places."""
    before, deadline = b"", time.monotonic() + PATIENCE
    while (now := driver.get_screenshot_as_png()) != before and time.monotonic() < deadline:
        before = now
        time.sleep(0.5)


def dag_graph(driver: WebDriver, url: str, dag: str, path: Path) -> None:
    """A picture of the DAG's newest run (of the DAG, if there is none) as a graph in Airflow's UI."""
    driver.get(url)
    driver.execute_script("localStorage.setItem('default_dag_view', JSON.stringify('graph'))")  # as the button above the grid does
    newest = f"{url}/api/v2/dags/{quote(dag)}/dagRuns?order_by=-run_after&limit=1"
    answer = "fetch(arguments[0]).then(r => r.json()).then(arguments[1])"
    runs = driver.execute_async_script(answer, newest)["dag_runs"]
    driver.get(f"{url}/dags/{quote(dag)}" + "".join(f"/runs/{quote(run['dag_run_id'])}" for run in runs))
    wait_for(driver, lambda: driver.find_elements(By.CSS_SELECTOR, ".react-flow__node"), f"the graph of {dag}")
    save(driver, path)


@click.command()
@click.option("--url", default="http://127.0.0.1:8080", show_default=True, help="Airflow's API server.")
@click.option("--user", default="admin", show_default=True)
@click.option("--password", envvar="REJOIN_PASSWORD", required=True, help="Better in the environment: REJOIN_PASSWORD.")
@click.option("--dag", required=True, help="A DAG that runs a topology.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("docs/pictures"), show_default=True)
def main(url: str, user: str, password: str, dag: str, out: Path) -> None:
    """Write page-light.png, page-dark.png and dag.png."""
    for dark in (False, True):
        with browser(dark=dark) as driver:
            log_in(driver, url, user, password)
            open_embedded(driver, url, f"/plugin/rejoin/rejoin/dag/{quote(dag)}", "Graph")
            save(driver, out / f"page-{'dark' if dark else 'light'}.png")
            if not dark:
                dag_graph(driver, url, dag, out / "dag.png")
    for path in sorted(out.glob("*.png")):
        click.echo(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
