"""A topology as data: checked, compiled, compared. No Spark, no lake.

``model`` is the plan; ``check`` compiles a topology file to it and reports every mistake; ``sql`` knows the expressions of users; ``change`` compares a plan with
an earlier one; ``extensions`` are what installed packages add. ``explain`` prints a plan.
"""
