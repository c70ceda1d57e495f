"""The ledger: which runs there are, what each step wrote, and the one commit that publishes a run.

``ledger`` writes, ``history`` reads (for people and pages); ``schema`` has the tables, ``records`` and ``runs`` what they tell. ``deliveries``, ``tries`` and
``left_out_nodes`` are further tables; ``connections`` and ``sqlite`` the way to the database; ``run_owner`` tells whether an owner still lives.
"""
