"""A Spark Connect server for one lake: ``python -m rejoin.connect`` runs ``server``."""
