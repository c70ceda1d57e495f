"""validate: changes are judged by expectations; what passes becomes visible with the run, and what fails is held back or stops it.

``step`` does it; ``judging`` reads and asks, ``questions`` says what is asked and what answers mean, ``great_expectations`` answers. ``held_rows`` is its SQL.
"""
