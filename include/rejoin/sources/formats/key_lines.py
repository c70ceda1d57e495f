"""Lines of values and lines of their keys, of two files -> lines of messages ``{"key":..,"value":..}``, as a feed has them in one file."""

from collections.abc import Iterator
from itertools import zip_longest

import msgspec

from rejoin.sources.formats.json_text import whole_document
from rejoin.sources.stored_files import corrupt, lines


def message_lines(values: Iterator[bytes], keys: Iterator[bytes], file: str, keys_file: str) -> Iterator[bytes]:
    """The n-th value and the n-th key, blank lines not counted, are the n-th message.

    A message is made of two whole JSON documents only: a text that is none could become other members of it. Where one is none the line is no JSON
    either, and so one bad record.

    Args:
        values: pieces of the file of values, in lines.
        keys: of that of the keys.
        file: path of the values as pinned, for errors.
        keys_file: that of the keys.

    Raises:
        SourceCorrupt: there are more of one than of the other. What was read before must be thrown away.
    """
    pairs = zip_longest(_documents(values), _documents(keys))
    for value, key in pairs:
        if value is None or key is None:
            for _ in pairs:  # a changed file is reported as changed, not as corrupt
                pass
            raise corrupt(file, f"it has {'fewer' if value is None else 'more'} records than {keys_file!r} has keys")
        yield _message(value, key)


def _documents(pieces: Iterator[bytes]) -> Iterator[bytes]:
    return (line for _, line in lines(pieces) if line and not line.isspace())


def _message(value: bytes, key: bytes) -> bytes:
    if not _is_json(value):
        return value + b"\n"
    if not _is_json(key):  # no text before a whole document makes another one
        return key + b" " + value + b"\n"
    return b'{"key":%b,"value":%b}\n' % (key, value)


def _is_json(text: bytes) -> bool:
    try:
        whole_document(text)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True
