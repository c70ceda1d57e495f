"""What an object store answers when it does not do what it is asked, as errors of ours: by the codes in the words of PyArrow's S3 client, without its words.

Only words of files are looked at: those of other errors may quote a row, which may say anything.
"""

import re

from rejoin.errors import RejoinError, StoreDenied, StoreDown, StoreMissing

_SAID = re.compile(r"AWS Error ([A-Z][A-Z_]+)(?: \(HTTP status (\d{3})\))?")
_GONE = re.compile(r"Path does not exist '|Cannot open file, does not exist: \w+://(?!/)")
"""PyArrow's words where a store has no such object, and PyIceberg's."""
_NO_BUCKET, _NO_OBJECT = ("NO_SUCH_BUCKET",), ("NO_SUCH_KEY", "RESOURCE_NOT_FOUND")
_FOR_FILES = ("Error", "IOException")
"""What DuckDB raises where reading a file raises an OSError, whose words it gives."""
_DENIED = (
    *("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "INVALID_CLIENT_TOKEN_ID", "INVALID_SIGNATURE", "SIGNATURE_DOES_NOT_MATCH"),
    *("MISSING_AUTHENTICATION_TOKEN", "UNRECOGNIZED_CLIENT", "OPT_IN_REQUIRED", "REQUEST_EXPIRED", "REQUEST_TIME_TOO_SKEWED"),
)
_REFUSED = ("400", "401", "403")
"""What a code that the client does not know means by its HTTP status: keys that ran out are 400."""


def of_a_store(error: BaseException, where: str) -> RejoinError | None:
    """The error to raise instead; None: it does not come from an object store."""
    text = "\n".join(str(e) for e in _chain(error) if _of_a_file(e))
    said = _SAID.search(text)
    if _GONE.search(text) or (said and (said[1] in _NO_OBJECT or (said[1] == "UNKNOWN" and said[2] == "404"))):
        return _missing(where, "an object that the lake names")
    if said is None:
        return None
    code, status = said.groups()
    if code in _NO_BUCKET:
        return _missing(where, "the bucket")
    if code in _DENIED or (code == "UNKNOWN" and status in _REFUSED):
        return StoreDenied(
            f"{where}: the object store refuses us ({_named(code, status)}); nothing of it was committed",
            expected="keys that may list, read, write and delete objects below the warehouse",
            next_step="look at [properties] of the lake's file (s3.access-key-id, s3.secret-access-key, client.region), or at the AWS settings of this process",
        )
    return StoreDown(
        f"{where}: the object store does not answer as it should ({_named(code, status)}); nothing of it was committed",
        expected="the store at s3.endpoint of the lake's file, or AWS where that names none",
        next_step="try again; if it stays, look whether this machine reaches the store",
    )


def _missing(where: str, what: str) -> StoreMissing:
    return StoreMissing(
        f"{where}: the object store does not have {what}; nothing of it was committed",
        expected="the bucket of `warehouse` in the lake's file, and every file that the lake's tables name",
        next_step="correct `warehouse`, make the bucket, or restore what was deleted from it",
    )


def _named(code: str, status: str | None) -> str:
    return f"HTTP status {status}" if status else code


def _of_a_file(error: BaseException) -> bool:
    """Whether an error is about a file, not about what is in it: Python's and PyArrow's, PyIceberg's, and DuckDB's that pass these on."""
    kind, package = type(error).__name__, type(error).__module__.partition(".")[0]
    return isinstance(error, OSError) or package == "pyiceberg" or (package in ("duckdb", "_duckdb") and kind in _FOR_FILES)


def _chain(error: BaseException) -> list[BaseException]:
    """The error, and what led to it."""
    found = [error]
    while (before := found[-1].__cause__) is not None and before not in found:
        found.append(before)
    return found
