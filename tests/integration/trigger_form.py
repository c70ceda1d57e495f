"""The form that Airflow's UI opens for a trigger, in a real browser: opened, cleared, pressed."""

import pictures
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.remote.webelement import WebElement

from rejoin.airflow.local.client import Client

FORM = "[role=dialog]"
SUBMIT = f"{FORM} [data-testid=trigger-dag-submit]"


class TriggerForm:
    """The form of a DAG, as it opens.

    Args:
        driver: a browser that has logged in.
        client: of the same Airflow.
        dag: the DAG.
    """

    def __init__(self, driver: WebDriver, client: Client, dag: str) -> None:
        self._driver, self._client, self._dag = driver, client, dag
        driver.get(f"{client.url}/dags/{dag}")
        pictures.wait_for(driver, self._press, f"the button Trigger of {dag}")
        titles = [param["schema"]["title"] for param in client.call("GET", f"/api/v2/dags/{dag}/details")["params"].values()]
        pictures.wait_for(driver, lambda: all(title in self.text for title in (*titles, "Advanced Options")), f"the form of {dag}")
        pictures.wait_for(driver, lambda: driver.find_elements(By.CSS_SELECTOR, SUBMIT), f"the end of the form of {dag}")

    @property
    def text(self) -> str:
        """What it says, asked for at once: the page replaces elements while it is read."""
        return str(self._driver.execute_script("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText).join(' ')", FORM))

    @property
    def may_be_sent(self) -> bool:
        """Whether the button is not grey."""
        return self._driver.find_element(By.CSS_SELECTOR, SUBMIT).is_enabled()

    def fill(self, field: str, text: str) -> None:
        """Types into a field."""
        self._driver.find_element(By.ID, f"element_{field}").send_keys(text)

    def choose(self, field: str, choice: str) -> None:
        """Chooses from a list."""
        self._driver.find_element(By.CSS_SELECTOR, f"#element_{field} input").send_keys(f"{choice}\n")

    def crosses(self) -> list[WebElement]:
        """What empties a list, of all lists that are not empty."""
        return self._driver.find_elements(By.CSS_SELECTOR, f"{FORM} [aria-label='Clear selected options']")

    def send(self) -> str:
        """Presses Trigger, which unpauses the DAG, too; returns the id of the run that it has made."""
        assert self.may_be_sent, f"the button is grey: {self.text}"
        before = self._by_hand()
        self._driver.find_element(By.CSS_SELECTOR, SUBMIT).click()
        pictures.wait_for(self._driver, lambda: self._by_hand() - before, f"a run of {self._dag} after Trigger: {self.text}")
        # The page asks for both at once. On SQLite one may find the database locked for 5 s, and is asked for once more, unless somebody leaves the page.
        pictures.wait_for(
            self._driver, lambda: not self._client.call("GET", f"/api/v2/dags/{self._dag}")["is_paused"], "the DAG's schedule"
        )
        (made,) = self._by_hand() - before
        return made

    def _press(self) -> bool:
        button = next((b for b in self._driver.find_elements(By.TAG_NAME, "button") if b.text == "Trigger"), None)
        if button is not None:
            button.click()
        return button is not None

    def _by_hand(self) -> set[str]:
        found = self._client.call("GET", f"/api/v2/dags/{self._dag}/dagRuns", run_type="manual")["dag_runs"]
        return {str(run["dag_run_id"]) for run in found}
