"""What is done to a lake between runs: ``compact``, ``expire``, ``verify``, ``repair``, ``quarantine``; ``ahead`` says what the next run will do,
``freshness`` when a topology is late. A command each; each is a run of its own kind, or reads only.
"""
