"""End to end with real parts: a shop in PostgreSQL under random transactions -> ``rejoin capture``, and Debezium in Kafka Connect -> files and topics -> rejoin.

Wherever everything is at rest, each output, and its changes applied in order, is the join as PostgreSQL executes it: nothing is lost, double or made up,
whatever was killed.
"""

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from integration.captured_shop import ENTRY
from integration.conftest import Sessions
from integration.connect_worker import ConnectWorker
from integration.forked import Forked
from integration.servers import KafkaServer
from integration.whole_shop import ShopLake, WholeShop

pytestmark = [pytest.mark.postgres, pytest.mark.kafka, pytest.mark.debezium, pytest.mark.slow, pytest.mark.timeout(600)]
TOLD_ALIKE = ("customers", "products", "orders", "items")
"""Tables of which all lakes declare the same columns."""


class Shown:
    """The shop, a worker of Kafka Connect, a process that captures, and a lake for each way in which the changes come.

    ``killed``: what was, in its order.
    """

    def __init__(self, root: Path, server: str, broker: KafkaServer, drawn: random.Random, name: str, keys: int) -> None:
        self.drawn, self.broker, self.killed = drawn, broker, list[str]()
        self.shop = WholeShop.made(server, name, keys)
        schemas, partitions = drawn.random() < 0.5, drawn.choice([1, 3])
        print(f"{schemas=}, {partitions=}")
        self.connect = ConnectWorker(root / "connect", broker.address, self.shop.url, schemas=schemas, partitions=partitions)
        self.captured = ShopLake(root / "captured", lambda table: f"debezium(captured('public.{table}', at='{name}'), max_delete_share=1)")
        self.topics = ShopLake(root / "topics", lambda table: f"debezium(kafka('{name}.public.{table}'), max_delete_share=1)")
        filed = "debezium('landing', topic='{}.public.{}', max_delete_share=1, max_bad_share=1)"
        self.files = ShopLake(root / "files", lambda table: filed.format(name, table), directions=False)
        self.lakes = (self.captured, self.topics, self.files)
        self._capture = self.process(self.captured, "capture")
        self.connect.start()

    def process(self, lake: ShopLake, command: str, *options: str) -> Forked:
        """A process of the command line."""
        return Forked(ENTRY, [*lake.words(command), *options], dict(os.environ))

    def kill_capture(self) -> None:
        self._capture.signal(signal.SIGKILL)
        assert self._capture.wait(30).returncode == -signal.SIGKILL
        self._capture = self.process(self.captured, "capture")

    def kill_connect(self) -> None:
        self.connect.stop(signal.SIGKILL)
        self.connect.start()

    def kill_broker(self) -> None:
        self.broker.stop(signal.SIGKILL)
        self.broker.start()

    def kill_run(self) -> None:
        self.connect.harvest(self.files.root / "landing")
        run = self.process(self.drawn.choice(self.lakes), "run")
        time.sleep(self.drawn.uniform(0.3, 3))
        run.signal(signal.SIGKILL)
        assert run.wait(30).returncode in (-signal.SIGKILL, 0)

    def kill(self, what: str) -> None:
        """Kills it, and starts it again."""
        getattr(self, f"kill_{what}")()
        self.killed.append(what)

    def rest(self) -> None:
        """Nobody writes: all that is committed arrives."""
        self._capture.signal(signal.SIGTERM)
        followed = self._capture.wait(60)
        # One that has just been started again may not listen yet.
        assert followed.returncode in (0, -signal.SIGTERM), followed.stdout + followed.stderr
        done = self.process(self.captured, "capture", "--once").wait(120)
        assert done.returncode == 0, done.stdout + done.stderr
        self._capture = self.process(self.captured, "capture")
        self.connect.drain(self.shop.db)
        self.connect.harvest(self.files.root / "landing")

    def end(self) -> None:
        """No process is left, and nothing that holds back the server's log."""
        self.connect.stop(signal.SIGKILL)
        self._capture.signal(signal.SIGKILL)
        self._capture.wait(30)
        self.shop.db.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE database = current_database() AND active"
        )
        self.shop.db.close()


@contextmanager
def shown(root: Path, server: str, broker: KafkaServer, drawn: random.Random, name: str, keys: int) -> Iterator[Shown]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("REJOIN_SOURCE_KAFKA", broker.address)
        patched.setenv(f"REJOIN_SOURCE_{name.upper()}", f"{server.rsplit('/', 1)[0]}/{name}")
        made = Shown(root, server, broker, drawn, name, keys)
        try:
            yield made
        finally:
            made.end()


def run(made: Shown, lake: ShopLake, sessions: Sessions, engine: str) -> None:
    """A run, and what it must have made."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("REJOIN_ENGINE", engine)
        counts = lake.run(sessions)
    print(lake.root.name, engine, {source: {kind: n for kind, n in of.items() if n} for source, of in counts.items()})
    lake.is_right(made.shop)


@pytest.mark.nightly  # by day a capture in a DAG (test_capture_airflow), and each connector by itself
def test_what_is_captured_and_what_debezium_writes_make_the_joins_of_the_database(
    tmp_path: Path, logging_server: str, broker: KafkaServer, sessions: Sessions, pytestconfig: pytest.Config
) -> None:
    drawn = random.Random(int(pytestconfig.option.hypothesis_seed))
    with shown(tmp_path, logging_server, broker, drawn, "whole_shop", 300) as made:
        made.connect.begins(made.shop.db)
        with made.shop.work(drawn) as more:
            made.kill("connect")
            made.connect.follows(made.shop.db)
            more(150)
        made.rest()
        for lake in made.lakes:
            run(made, lake, sessions, "local")
        known = {name: (made.captured.told(name)[0], made.files.told(name)[0]) for name in TOLD_ALIKE}
        made.shop.evolve()
        with made.shop.work(drawn) as more:
            more(50)
            made.kill("capture")
            more(100)
        made.rest()
        for name, (captured, filed) in known.items():
            ours, theirs = made.captured.told(name, captured)[1], made.files.told(name, filed)[1]
            assert ours == theirs != [], f"capture and Debezium say otherwise of {name}"
        for lake, engine in zip(made.lakes, drawn.sample(["local", "local", "spark"], 3), strict=True):
            run(made, lake, sessions, engine)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_fifty_runs_with_kills_lose_nothing_double_nothing_and_make_nothing_up(
    tmp_path: Path, logging_server: str, broker: KafkaServer, sessions: Sessions, pytestconfig: pytest.Config
) -> None:
    drawn = random.Random(int(pytestconfig.option.hypothesis_seed))
    with shown(tmp_path, logging_server, broker, drawn, "killed_shop", 5_000) as made:
        for _ in range(3):
            made.connect.begins(made.shop.db)
            time.sleep(drawn.uniform(0, 3))
            made.kill("connect")  # in its snapshot
        made.rest()
        for number in range(50):
            with made.shop.work(drawn) as more:
                for what in drawn.choices(["capture", "connect", "broker", "run"], k=drawn.randrange(1, 4)):
                    time.sleep(drawn.uniform(0, 3))
                    made.kill(what)
                more(drawn.randrange(20, 200))
                if number % 3 < 2:
                    continue
                done = made.process(drawn.choice(made.lakes), "run").wait(120)
                assert done.returncode in (0, 75), done.stdout + done.stderr
            made.rest()
            print(f"round {number}, killed so far: {made.killed}")
            for lake in made.lakes:
                run(made, lake, sessions, drawn.choice(["local"] * 5 + ["spark"]))
            if number == 20:
                made.shop.evolve()
        assert {*made.killed} == {"capture", "connect", "broker", "run"}
