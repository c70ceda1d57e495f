"""``python -m rejoin.cli``."""

from rejoin.cli import main

main()
