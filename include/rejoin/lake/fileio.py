"""PyIceberg's way to files, where it differs from Spark's."""

import os

from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties

from rejoin.lake.paths import native


class LocalFileIO(PyArrowFileIO):
    """PyIceberg's, but a path behind ``file:`` is taken as it is written, as Hadoop does: PyIceberg's own ends at a ``#`` or ``?``."""

    @staticmethod
    def parse_location(location: str, properties: Properties = EMPTY_DICT) -> tuple[str, str, str]:
        """Scheme, host and path."""
        local = native(location)
        return PyArrowFileIO.parse_location(location, properties) if local is None else ("file", "", os.path.abspath(local))  # noqa: PTH100
