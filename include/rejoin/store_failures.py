"""What an object store answers when it does not do what it is asked, as errors of ours: by the codes in the words of PyArrow's S3 client, without its words."""

import re

from rejoin.errors import RejoinError, StoreDenied, StoreDown, StoreMissing

_SAID = re.compile(r"AWS Error ([A-Z][A-Z_]+)(?: \(HTTP status (\d{3})\))?")
_GONE = re.compile(r"Path does not exist '|Cannot open file, does not exist: \w+://(?!/)")
"""PyArrow's words where a store has no such object, and PyIceberg's."""
_MISSING = ("NO_SUCH_BUCKET",)
_DENIED = (
    *("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "INVALID_CLIENT_TOKEN_ID", "INVALID_SIGNATURE", "SIGNATURE_DOES_NOT_MATCH"),
    *("MISSING_AUTHENTICATION_TOKEN", "UNRECOGNIZED_CLIENT", "OPT_IN_REQUIRED", "REQUEST_EXPIRED", "REQUEST_TIME_TOO_SKEWED"),
)
_REFUSED = ("400", "401", "403")
"""What a code that the client does not know means by its HTTP status: keys that ran out are 400."""


def of_a_store(error: BaseException, where: str) -> RejoinError | None:
    """The error to raise instead; None: it does not come from an object store."""
    text = "\n".join(map(str, _chain(error)))
    if (said := _SAID.search(text)) is None:
        return _missing(where, "an object that the lake names") if _GONE.search(text) else None
    code, status = said.groups()
    if code in _MISSING:
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


def _chain(error: BaseException) -> list[BaseException]:
    """The error, and what led to it."""
    found = [error]
    while (before := found[-1].__cause__) is not None and before not in found:
        found.append(before)
    return found
