"""A capture that is killed anywhere, while others write, loses nothing and doubles nothing: the joined output is what PostgreSQL says of the join."""

import random
import signal
import time
from pathlib import Path

import pytest
from integration.captured_shop import CapturedShop, Writer

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


def killed(shop: CapturedShop, kills: int, rows: int, seed: int) -> None:
    """Kills captures at random moments while two writers write; runs rejoin in between, and at the end compares."""
    drawn = random.Random(seed)
    shop.fill(rows)
    writers = [Writer(shop.url, seed + i, rows) for i in range(2)]
    for writer in writers:
        writer.start()
    died = 0
    try:
        for number in range(kills):
            once = number % 3 == 1  # it may have ended by itself
            capture = shop.started(*(["--once"] if once else []))
            time.sleep(drawn.uniform(0.2, 1.5))
            capture.signal(signal.SIGKILL)
            done = capture.wait(30)
            assert done.returncode == -signal.SIGKILL or (once and done.returncode == 0), done.stdout + done.stderr
            died += done.returncode != 0
            if number % 3 == 2 and shop.files:
                shop.run()
    finally:
        for writer in writers:
            writer.stop()
    assert died >= kills * 2 // 3 and sum(w.transactions for w in writers) > 100
    shop.capture()
    shop.run()
    assert shop.joined() == shop.expected()
    assert shop.capture().strip().endswith("0 rows, 0 changes of 2 tables, 0 files of changes")


def test_kills_lose_and_double_nothing(logging_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = CapturedShop(logging_server, "killed", tmp_path, monkeypatch)
    with shop.db:
        killed(shop, 6, 20_000, random.randrange(10**6))


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_many_kills_lose_and_double_nothing(logging_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = CapturedShop(logging_server, "killed_often", tmp_path, monkeypatch)
    with shop.db:
        killed(shop, 50, 200_000, random.randrange(10**6))
