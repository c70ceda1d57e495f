"""Any command of rejoin as a Spark job, for spark-submit: `jobs/command.py verify --lake ... --topology ...`."""

from rejoin.cli import main

if __name__ == "__main__":
    main()
