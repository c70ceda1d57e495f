"""The DAGs that look after every topology of the lake. A failed task is the alert: pass ``on_failure`` with a notifier of yours."""

from rejoin.airflow import operation_dags

maintenance = operation_dags.maintenance(schedule="30 3 * * *", keep_days=7)
verification = operation_dags.verification(schedule="0 4 * * *")
freshness = operation_dags.freshness(schedule="*/15 * * * *")
abandon = operation_dags.abandon()
