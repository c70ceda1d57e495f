"""What `rejoin capture` costs: N rows of a table as they are, then N changes of the log. Prints a line each: seconds of the clock, of this machine's CPUs
(without the server's), and the machine's load before. `python bench/capture.py 5000000`
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from integration.servers import postgres

TABLE = "CREATE TABLE orders (id int PRIMARY KEY, customer int, total numeric(12, 2), at timestamptz, note text)"
ROWS = "INSERT INTO orders SELECT i, i %% 100000, i * 1.25, '2026-01-01'::timestamptz + i * interval '1 second', 'note ' || i FROM generate_series(1, %s) i"
CHANGES = "UPDATE orders SET total = total + 1"
FILE = """
from rejoin import Topology, captured, debezium

t = Topology("t")
orders = t.table("orders", key="id", schema="id INT, customer INT, total DECIMAL(12,2), at TIMESTAMP, note STRING", source=debezium(captured("public.orders", at="bench")))
orders.named("kept")
"""


@dataclass(frozen=True)
class Cost:
    """What a capture cost, and what it landed."""

    seconds: float
    cpu: float
    load: float
    bytes: int


def captured(root: Path) -> Cost:
    """Captures once, in a process of its own."""
    load, landed, before, began = os.getloadavg()[0], _landed(root), resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([sys.executable, "-m", "rejoin.cli", "capture", "t.py", "--once"], cwd=root, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Cost(time.monotonic() - began, cpu, load, _landed(root) - landed)


def _landed(root: Path) -> int:
    return sum(file.stat().st_size for end in ("jsonl", "parquet") for file in root.rglob(f"*.{end}"))


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int, nargs="?", default=5_000_000)
    count = parser.parse_args().rows
    with postgres(wal_level="logical", max_wal_size="16GB") as server, tempfile.TemporaryDirectory() as name:
        url, root = server.replace("+psycopg", ""), Path(name)
        os.environ["REJOIN_SOURCE_BENCH"] = url
        (root / "t.py").write_text(FILE)
        print("| what | seconds | CPU s | landed MiB | load |\n|---|---|---|---|---|")
        with psycopg.connect(url, autocommit=True) as db:
            for what, statement in (("rows", TABLE), ("changes", CHANGES)):
                db.execute(statement)  # type: ignore[arg-type]
                if what == "rows":
                    db.execute(ROWS, (count,))  # type: ignore[arg-type]
                    db.execute("VACUUM ANALYZE orders")
                cost = captured(root)
                print(f"| {count:,} {what} | {cost.seconds:.1f} | {cost.cpu:.1f} | {cost.bytes >> 20:,} | {cost.load:.1f} |", flush=True)


if __name__ == "__main__":
    main()
