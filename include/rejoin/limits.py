"""Every number that decides whether something is small or large, worth it or too much: in one place, with the reason for its value.

``docs/architecture.md`` lists them all; a test compares the two. Tests set some with ``limited`` (tests/limited.py); a task of a Spark job takes over
those of the process that sent it; nobody else sets any.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The numbers. ``limits()`` gives those that are in force."""

    small_rows: int = 200_000
    """A stage over no more rows than these is done at once, on the driver; of more rows, it is put off (in the process) or Spark's."""
    found_times: int = 4
    """A lookup may find so many times ``small_rows``: old versions that are not compacted yet, or subscribers. It may also ask for as many keys
    of a sparse set, whose rows then go to Spark.
    """
    sparse: int = 20
    """More keys than ``small_rows`` are looked up on the driver where the table has so many times more rows: else Spark scans the table in less
    time than it takes to hand over what was found.
    """
    decoded_rows: int = 100_000_000
    """A lookup that would have to decode more rows than these is left to Spark. 50 million take 2 seconds, by Spark on the same two cores 15."""
    read_values: int = 10_000
    """Of an output no more values (rows times columns) than these are read to learn what they were. Of more, hashes are read, and the rows are made once
    more from the versions before, which the run knows: at 10,000 of 10 million rows of 8 columns, a run then takes four fifths of the time.
    """
    range_rows: int = 1_500_000
    """Rows of a range of keys that is worked on apart: as many ranges as are worked on at once are in memory."""
    fewest_range_rows: int = 200_000
    """No range is made smaller, though cores may be idle: a statement more takes some 20 ms."""
    listed_keys: int = 10_000
    """No longer list of keys is written into a query."""
    row_group: int = 8_192
    """Rows in a row group of the tables that rejoin writes: small enough for lookups, large enough for scans (docs/benchmarks.md)."""
    fetched_bytes: int = 32 << 20
    """Input up to this size is fetched at once, per source and run."""
    recent_bytes: int = 64 << 20
    """What steps of a process have just written is kept for the next ones up to this size."""
    large_group: int = 200_000
    """Groups with more members have totals, where every aggregate has an inverse: a change then costs what changes, but totals are looked up and written. Of a
    group of so many members a run takes as long either way; of a million, reading all takes 0.2 s of CPU more than of 20, and totals 0.04 s.
    """
    task_rows: int = 500
    """With the engine Spark, a step over more rows is one task that runs DuckDB where Spark has one executor only: it takes half a second less than
    Spark SQL at a thousand rows, and a fraction of the CPU at a hundred thousand. Apart from ``small_rows``, so that tests of Spark SQL can make few rows large.
    """
    task_bytes: int = 128 << 10
    """The same for the input of a source table, as it is before it was packed: about 500 events."""
    broadcast_keys: int = 1_000_000
    """Key sets up to this size are sent to every task of a scan; larger ones are joined by a shuffle."""
    pruned_rows: int = 5_000_000
    """A scan of a table with more rows first asks for the smallest and largest key, so that files and row groups outside are skipped."""
    full_share: float = 0.9
    """Above this share of affected rows an output is recomputed: following the changes of half of all rows still takes less (docs/benchmarks.md)."""
    full_rows: int = 200_000
    """Below so many left rows either way takes about the same time, and following the changes is the default."""
    fuse_rows: int = 1_000
    """An output with fewer rows never stops a run by the share that would change: of a few rows a share says nothing."""
    refused_records: int = 10
    """So many refused records never stop a run, whatever share of a small cut they are."""
    held_rows: int = 10
    """So many rows that break an expectation are held back, whatever share of a small run they are."""
    opened_files: int = 1_000
    """A run's check of itself opens, of a table of more files than these, only those that can hold the keys by their bounds."""
    base_rows: int = 50_000
    """A compaction takes files with fewer rows for deltas, unless the whole table is smaller."""
    base_bytes: int = 2 << 20
    """A file of so many bytes is none, however few rows it has: rows of some kilobytes fill a file before they are ``base_rows``."""
    fold_share: float = 0.25
    """A unit is folded when its delta and hidden rows reach this share of its rows."""
    merged_files: int = 8
    """So many deltas of about one size are merged; sizes are about one when they are within this factor."""
    folded_rows: int = 20_000_000
    """A key range with more rows than these is folded by Spark."""
    compared_rows: int = 400_000
    """About how many rows a task of a comparison sorts. With 12 million of 50 million rows in each of four tasks, Java's heap of 4 GiB was full."""
    searched_rows: int = 2_000_000
    """A search for a key reads files with at most so many rows."""
    counted_rows: int = 1_000_000
    """The page counts the live rows of a table up to so many stored versions; above, only a bound is known."""
    aside_rows: int = 10_000
    """What is kept aside of a table is counted up to so many stored rows; above, only a bound is known."""
    newest_file_rows: int = 100_000
    """The newest rows are taken from files with at most so many rows."""
    skew_rows: int = 1_000_000
    """So many stored subscriptions are looked at for a skew; of more, a sample by primary key."""
    skew_refused: int = 50_000_000
    """Not even a sample is taken of more subscriptions: every file would have to be read."""

    def small(self, rows: int) -> bool:
        """Whether to do a stage over so many rows at once."""
        return rows <= self.small_rows

    @property
    def large(self) -> int:
        """A number of rows that is not small: what is not counted counts as so many."""
        return self.small_rows + 1

    @property
    def most(self) -> int:
        """The keys that a lookup on the driver may ask for, and the rows that it may find."""
        return self.found_times * self.small_rows

    def worth(self, keys: int, stored: int) -> bool:
        """Whether to look so many keys up on the driver, in a table of so many stored rows."""
        return self.small(keys) or (keys <= self.most and stored >= self.sparse * keys)


in_force = Limits()


def limits() -> Limits:
    """Those that are in force."""
    return in_force
