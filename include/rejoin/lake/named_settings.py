"""The settings of a system that sinks or sources name, as an environment variable holds them."""

import json

from rejoin.errors import SetupError

ADDRESS = "address"


def settings(given: str, variable: str, address: str = ADDRESS) -> dict[str, str]:
    """A JSON object as texts; anything else is an address (``host:9092``, ``postgresql://...``).

    Raises:
        SetupError: the text begins as a JSON object and is none.
    """
    if not given.lstrip().startswith("{"):
        return {address: given}
    try:
        return {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in json.loads(given).items()}
    except json.JSONDecodeError as error:
        raise SetupError(f"{variable} is no JSON object (line {error.lineno}, column {error.colno})", next_step="correct it") from None
