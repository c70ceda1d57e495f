"""PyIceberg reads an array, or a map, of structs that is null as one without elements: here its reader gets the nulls back.

It is put right in PyIceberg itself, since each of its ways to read rows makes a reader of its own.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import pyarrow as pa
from pyiceberg.io.pyarrow import ArrowProjectionVisitor

_Read = Callable[..., pa.Array | None]


def _with_nulls(read: _Read) -> _Read:
    @wraps(read)
    def reads(visitor: Any, kind: Any, found: pa.Array | None, *parts: pa.Array | None) -> pa.Array | None:
        made = read(visitor, kind, found, *parts)
        if found is None or made is None or made.null_count == found.null_count:
            return made
        inner = (made.keys, made.items) if pa.types.is_map(made.type) else (made.values,)
        return type(made).from_arrays(made.offsets, *inner, type=made.type, mask=found.is_null())

    return reads


def keep_nulls() -> None:
    """Whoever opens a catalog calls it before. Idempotent."""
    for name in ("list", "map"):
        if not hasattr(read := getattr(ArrowProjectionVisitor, name), "__wrapped__"):
            setattr(ArrowProjectionVisitor, name, _with_nulls(read))
