"""deliver, after a run: `python jobs/deliver.py --help`. Needs no Spark."""

from rejoin.steps.run.job import main

if __name__ == "__main__":
    main("deliver")
