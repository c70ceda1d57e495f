"""The command line, which stands still (SIGSTOP) where ``REJOIN_STOP`` says, as on a machine that falls asleep. SIGCONT lets it go on."""

import os
import signal

from rejoin import crash
from rejoin.cli import main

if __name__ == "__main__":
    reached, stop = crash.point, [os.environ["REJOIN_STOP"]]

    def point(name: str) -> None:
        reached(name)
        if [name] == stop:
            stop.clear()
            os.kill(os.getpid(), signal.SIGSTOP)

    crash.point = point
    main()
