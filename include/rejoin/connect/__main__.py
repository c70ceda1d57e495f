"""``python -m rejoin.connect``."""

from rejoin.connect.server import main

main()
