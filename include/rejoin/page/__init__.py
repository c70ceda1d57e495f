"""The page in Airflow's UI: reads the ledger and Iceberg's tables, and shows them. Never Spark, and nothing here writes.

``gather`` reads; ``model``, ``plan_picture``, ``formats`` and ``render`` are pure; ``routes`` is the only module that knows Airflow and FastAPI.
"""
