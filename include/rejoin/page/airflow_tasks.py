"""Which step of a run an Airflow task does."""


def step_of_task(task: str, steps: list[str]) -> str | None:
    """The step that a task does: names are compared by their letters and digits, because a task id may separate them in another way."""

    def bare(name: str) -> str:
        return "".join(c for c in name if c.isalnum())

    return next((s for s in steps if bare(s) == bare(task)), None)
