"""How the sources of a topology are reached: what the lake's file and the environment say of the systems that hold them."""

import os
from collections.abc import Mapping

from rejoin.lake.config import LakeConfig
from rejoin.lake.named_settings import settings
from rejoin.sources.access import SourceAccess

VARIABLE = "REJOIN_SOURCE_"


def source_access(config: LakeConfig | None, root: str, environment: Mapping[str, str] = os.environ) -> SourceAccess:
    """What ``[sources.<name>]`` of the lake's file says, and what ``REJOIN_SOURCE_<NAME>`` says, which wins.

    Args:
        config: the lake; None: there is none yet.
        root: where relative paths start.
        environment: of this process; the workers that read get the result.

    Raises:
        SetupError: a variable is no address and no JSON object.
    """
    stated = {} if config is None else config.sources
    given = {name.removeprefix(VARIABLE).lower(): settings(text, name) for name, text in environment.items() if name.startswith(VARIABLE)}
    named = {name: {**stated.get(name, {}), **given.get(name, {})} for name in {*stated, *given}}
    return SourceAccess(root, named, {} if config is None else config.pyiceberg_settings())
