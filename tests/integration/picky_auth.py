"""Airflow's simple auth manager with one user more: ``stranger`` may read DAGs, but not those of the shop."""

from typing import Any

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager


class PickyAuthManager(SimpleAuthManager):
    """As larger auth managers permit DAG by DAG."""

    def is_authorized_dag(self, *, method: Any, user: Any, access_entity: Any = None, details: Any = None) -> bool:
        if user.get_name() == "stranger" and details is not None and details.id is not None and details.id.startswith("shop"):
            return False
        return super().is_authorized_dag(method=method, user=user, access_entity=access_entity, details=details)
