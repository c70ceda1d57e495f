"""resolve, one step of a run: `python jobs/resolve.py --help`, or with spark-submit."""

from rejoin.steps.run.job import main

if __name__ == "__main__":
    main("resolve")
