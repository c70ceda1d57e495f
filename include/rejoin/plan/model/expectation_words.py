"""Expectations in the words of a topology file: ``unique("order_id")``, whatever Great Expectations calls it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

_HELPERS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "expect_column_values_to_not_be_null": ("not_null", ("column",)),
    "expect_column_values_to_be_in_set": ("in_set", ("column", "value_set")),
    "expect_column_values_to_match_regex": ("matches", ("column", "regex")),
    "expect_column_values_to_be_between": ("between", ("column", "min_value", "max_value")),
    "expect_column_values_to_be_unique": ("unique", ("column",)),
    "expect_compound_columns_to_be_unique": ("unique", ("column_list",)),
    "condition": ("condition", ("sql",)),
    "not_empty": ("not_empty", ("column",)),
    "computable": ("computable", ()),
    "row_count": ("row_count", ("max_drop", "max_growth")),
    "matched": ("matched", ("table", "at_least")),
    "fresh": ("fresh", ("column", "hours")),
}
"""Type -> the helper that makes it, and the arguments in the helper's order, by the names that they have in the plan."""
_BY_NAME: Final = ("max_drop", "max_growth", "at_least", "hours")
_RENAMED: Final = {"min_value": "low", "max_value": "high"}


def title(type_: str, kwargs: Mapping[str, Any]) -> str:
    """One line of Python that makes the expectation: a call of the helper, or of the class of Great Expectations where the helper cannot say it."""
    given = {k: v for k, v in kwargs.items() if k != "resolved"}
    _, known = _HELPERS.get(type_, ("", ()))
    if type_ in _HELPERS and given.keys() <= set(known):
        return f"{word(type_)}({', '.join(_arguments(type_, given, known))})"
    return f"{_class(type_)}({', '.join(f'{k}={_literal(v)}' for k, v in given.items())})"


def word(type_: str) -> str:
    """The helper that makes expectations of a type, or the class of Great Expectations."""
    return _HELPERS[type_][0] if type_ in _HELPERS else _class(type_)


def _arguments(type_: str, given: Mapping[str, Any], known: tuple[str, ...]) -> Iterator[str]:
    if type_ == "row_count":
        given = {"max_drop": None} | dict(given)  # left out, it would mean the helper's default
    after_a_gap = False
    for name in known:
        if name not in given:
            after_a_gap = True
        elif name == "column_list":
            yield from map(_literal, given[name])
        elif name in _BY_NAME or after_a_gap:
            yield f"{_RENAMED.get(name, name)}={_literal(given[name])}"
        else:
            yield _literal(given[name])


def _class(type_: str) -> str:
    return "".join(part.capitalize() for part in type_.split("_")) if type_.startswith("expect_") else type_


def _literal(value: object) -> str:
    """A value as people write it: texts in double quotes, regular expressions raw."""
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if not isinstance(value, str):
        return repr(value)
    if "\\" in value and value.isprintable() and '"' not in value and not value.endswith("\\"):
        return f'r"{value}"'
    return json.dumps(value, ensure_ascii=not value.isprintable())
