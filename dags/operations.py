"""The DAGs that look after every topology of the lake. A failed task is the alert: pass ``on_failure`` with a notifier of yours."""

from rejoin.airflow import operations

maintenance = operations.maintenance(schedule="30 3 * * *", keep_days=7)
verification = operations.verification(schedule="0 4 * * *")
freshness = operations.freshness(schedule="*/15 * * * *")
abandon = operations.abandon()
