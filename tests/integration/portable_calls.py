"""Expressions that call functions of texts and times. Not all are portable."""

from collections.abc import Iterator

from integration.portable_expressions import NUMBERS, TEXTS, TIMES, a, b


def texts() -> Iterator[str]:
    for name in TEXTS:
        text, other = a(name), b(name)
        yield from (
            f"{function}({text})"
            for function in ("upper", "lower", "ucase", "lcase", "trim", "ltrim", "rtrim", "length", "char_length", "len", "octet_length")
        )
        yield from (
            f"{text} || {other}",
            f"concat({text}, '-', {other})",
            f"concat({text})",
            f"concat_ws(',', {text}, {other})",
            f"concat_ws({text}, {other}, 'x', NULL)",
            f"concat_ws({other}, {text})",
        )
        yield from (
            f"{function}({text}, {position})"
            for function in ("substring", "substr")
            for position in (-6000, -3, -1, 0, 1, 2, 5, 6000, 2147483647)
        )
        yield from (
            f"substring({text}, {position}, {count})" for position in (-3, -1, 0, 1, 2, 4, 4999) for count in (-1, 0, 1, 2, 5, 2147483647)
        )
        yield from (f"{function}({text}, {count})" for function in ("left", "right") for count in (-1, 0, 1, 2, 5, 6000, 2147483647))
        yield from (
            f"substring({text} FROM 2 FOR 3)",
            f"TRIM(BOTH FROM {text})",
            f"TRIM(LEADING FROM {text})",
            f"TRIM('a' FROM {text})",
            f"trim({text}, {other})",
            f"ltrim('a', {text})",
        )
        yield from (
            f"split_part({text}, {mark}, {number})"
            for mark in ("'a'", "'b'", "'aa'", "'|'", "'ß'", "' '", "''", other)
            for number in (1, 2, 3, 5000, 0, -1)
        )
        yield from (
            f"replace({text}, {what})"
            for what in ("'a', 'b'", "'a'", "'aa', 'a'", "'', 'x'", f"{other}, 'x'", f"'a', {other}", "'ß', 'ss'", "'\\u0301', ''")
        )
        yield from (
            f"{function}({text}, {what})"
            for function in ("startswith", "endswith", "contains", "instr")
            for what in (other, "'a'", "''", "'😀'", "'c '")
        )
        patterns = (
            "a%",
            "%a",
            "%a%",
            "a_c",
            "_",
            "__",
            "%",
            "",
            "a",
            r"a\\%c",
            r"a\\_c",
            r"%\\%%",
            r"\\\\",
            "%\\n%",
            "_%_",
            "%ß%",
            "😀",
            "_😀_",
            "a%b%c",
            "%%",
            "_____%",
            "A%",
        )
        yield from (f"{text} {word}LIKE '{pattern}'" for pattern in patterns for word in ("", "NOT "))
        yield from (
            f"{text} LIKE 'a#%c' ESCAPE '#'",
            f"{text} LIKE 'a\\\\%' ESCAPE '#'",
            f"{text} LIKE '##' ESCAPE '#'",
            f"{text} LIKE {other}",
        )
        yield from (
            f"upper({text}) = upper({other})",
            f"length(trim({text})) > 2 AND {text} <> {other}",
            f"coalesce(nullif(trim({text}), ''), 'none')",
        )
    for name in (*NUMBERS, *TIMES, "bool", "dbl"):
        yield from (
            f"{a('str')} || {a(name)}",
            f"concat({a(name)}, {b(name)})",
            f"length({a(name)})",
            f"upper({a(name)})",
            f"concat_ws(',', {a(name)})",
        )


def times() -> Iterator[str]:
    parts = (
        "year",
        "quarter",
        "month",
        "day",
        "dayofmonth",
        "dayofweek",
        "weekday",
        "dayofyear",
        "weekofyear",
        "hour",
        "minute",
        "second",
        "last_day",
        "to_date",
    )
    fields = ("YEAR", "QUARTER", "MONTH", "DAY", "DOY", "WEEK", "HOUR", "MINUTE", "SECOND", "DOW", "YEAROFWEEK")
    units = (
        "YEAR",
        "yyyy",
        "yy",
        "QUARTER",
        "MONTH",
        "mm",
        "mon",
        "WEEK",
        "DAY",
        "dd",
        "HOUR",
        "MINUTE",
        "SECOND",
        "MILLISECOND",
        "nonsense",
    )
    days = (0, 1, -1, 31, 365, 10000, -10000, 2147483647, -2147483648)
    for name in (*TIMES, "tim"):
        value = a(name)
        yield from (f"{part}({value})" for part in parts)
        yield from (f"extract({field} FROM {value})" for field in fields)
        yield from (f"date_trunc('{unit}', {value})" for unit in units)
        yield from (f"trunc({value}, '{unit}')" for unit in units)
        yield from (
            f"{function}({value}, {count})" for function in ("date_add", "date_sub", "add_months") for count in (*days, b("int"), b("big"))
        )
        yield from (f"{function}({value}, {b(other)})" for function in ("datediff", "date_diff") for other in (*TIMES, "tim"))
        yield from (
            f"datediff({value}, '2020-01-01')",
            f"year({value}) = 2020 AND month({value}) < 3",
            f"{value} >= date_trunc('month', TIMESTAMP'2020-01-15 00:00:00')",
        )
        yield from (
            f"{value} + 1",
            f"{value} - 1",
            f"{value} + INTERVAL 1 DAY",
            f"CAST({value} AS DATE) = DATE'2020-01-31'",
            f"date_trunc('month', {value}) = TIMESTAMP'2020-01-01 00:00:00'",
        )
        yield from (f"year({value}) {sign} 2020" for sign in ("=", "<", ">="))
        yield from (
            f"to_timestamp({value})",
            f"{value} - INTERVAL 90 MINUTES",
            f"INTERVAL 1 WEEK 2 SECONDS + {value}",
            f"{value} - INTERVAL -1 DAY",
        )
    for name in ("int", "big", "d10", "str", "tim"):
        yield from (f"{function}({a(name)})" for function in ("timestamp_seconds", "timestamp_millis", "timestamp_micros", "to_timestamp"))
