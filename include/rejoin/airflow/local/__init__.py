"""Airflow on this machine: ``rejoin up`` starts ``server`` in ``processes`` of its own; ``client`` talks to it as a user does."""
