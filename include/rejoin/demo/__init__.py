"""``rejoin demo``: ``story`` delivers real flights, ``run`` runs them chapter by chapter; ``examples`` makes files for the topologies of ``dags/``."""
