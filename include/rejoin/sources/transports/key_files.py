"""Files of keys and headers beside files of values, as Kafka Connect's sinks write them: ``x.keys.json`` and ``x.headers.json`` beside ``x.json``."""

import re
from collections.abc import Collection
from typing import NamedTuple

from rejoin.sources.transports.layout import CONNECT, Listed

_BESIDE = re.compile(r"(?P<of>.+)\.(?P<what>keys|headers)(?P<end>\.[^/]+)")


class Beside(NamedTuple):
    """What belongs to files of values. ``keys``: label of a file of values -> its keys; ``others``: what nobody reads."""

    keys: dict[str, Listed]
    others: list[str]

    def awaited(self, labels: Collection[str]) -> set[str]:
        """Those of these files of values whose keys are still to come: others in their directories have theirs, and Connect writes the keys last."""
        folders = {label.rpartition("/")[0] for label in self.keys}
        return {a for a in labels if a not in self.keys and a.rpartition("/")[0] in folders and CONNECT.fullmatch(a.rpartition("/")[2])}


def taken_apart(files: dict[str, Listed], *, keys: bool) -> Beside:
    """Takes the files of keys and headers out of ``files``: those whose values lie beside them, and those that Connect has named.

    Args:
        files: by label.
        keys: whether keys are read.
    """
    found = Beside({}, [])
    for label in [label for label in files if ".keys." in label or ".headers." in label]:
        name = _BESIDE.fullmatch(label)
        if name is None:
            continue
        values = name["of"] + name["end"]
        if values in files or CONNECT.fullmatch(values.rpartition("/")[2]):
            file = files.pop(label)
            if keys and name["what"] == "keys" and values in files:
                found.keys[values] = file
            else:
                found.others.append(label)
    return found
