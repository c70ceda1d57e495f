"""Expectations on the rows that a run would publish, judged by Great Expectations; ``engine`` is the only module that imports it.

``judge`` prepares what an expectation needs and says what its result means, ``reports`` keeps the results. Importing this package is cheap.
"""
