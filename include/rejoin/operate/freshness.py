"""After how long a topology should have been published again: a setting of the deployment, for the page and for the DAG that looks after it."""

import os
from datetime import timedelta

from rejoin.errors import SetupError

FRESH_WITHIN = "REJOIN_FRESH_WITHIN"
"""The environment variable: a number of hours."""
DAY_AND_A_BIT = 26.0


def fresh_within() -> timedelta:
    """From the environment: the longest time that may pass between two published runs, which the page and ``operations.freshness`` go by.

    Raises:
        SetupError: REJOIN_FRESH_WITHIN is no number of hours.
    """
    stated = os.environ.get(FRESH_WITHIN, "")
    try:
        hours = float(stated) if stated else DAY_AND_A_BIT
        if hours > 0:
            return timedelta(hours=hours)
    except (ValueError, OverflowError):
        pass
    raise SetupError(
        f"{FRESH_WITHIN} is {stated!r}", expected="a number of hours above zero", next_step="correct it in Airflow's environment"
    )
