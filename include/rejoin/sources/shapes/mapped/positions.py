"""What says which record of a key is newer -> positions, which are compared as texts.

A number comes as its text, in ``DIGITS`` digits; larger, negative and fractional ones so that their texts sort as they do. A time is the number of its
microseconds since 1970, so that numbers and times of one field cannot be told in the wrong order by how they are written.
"""

import re
from decimal import Decimal

from rejoin.errors import BadRecord
from rejoin.sources.decode import temporal
from rejoin.sources.decode.values import NUMBER

UNKNOWN_POSITION = "UNKNOWN_POSITION"
SEPARATOR = ","
"""Between the parts of a position: comes before all that can follow in a part."""
DIGITS = 20
_MOST = 98
_NO_NUMBER = "is neither a number nor a time; of other texts SQL has to say how they sort: CAST(field AS STRING) if they sort as they are"


def of_number(value: Decimal | int) -> str:
    """The position of a number of at most 98 digits on either side of the point."""
    number = Decimal(value)
    whole, _, fraction = f"{number.copy_abs():f}".partition(".")
    whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
    sign, length, padded = "", "", whole.zfill(DIGITS)
    if len(whole) > DIGITS:
        sign, length = "A", f"{len(whole):02d}"
    text = length + padded + (f".{fraction}" if fraction else "")
    if number >= 0:
        return sign + text
    # What is further from zero is smaller; of a fraction, what goes on is.
    return ("+" if sign else "-") + text.translate(_COMPLEMENT) + ":"


_COMPLEMENT = str.maketrans("0123456789", "9876543210")


def of_text(text: str, what: str) -> str:
    """The position that a field gives: of a number or an ISO time.

    Raises:
        BadRecord: it is neither.
    """
    if NUMBER.fullmatch(text):
        number = Decimal(text)
        if number.adjusted() < _MOST and -int(number.as_tuple().exponent) <= _MOST:
            return of_number(number)
        raise BadRecord(UNKNOWN_POSITION, f"{what} is a number of too many digits")
    try:
        return of_number(temporal.instant(text, what))
    except BadRecord:
        raise BadRecord(UNKNOWN_POSITION, f"{what} {_NO_NUMBER}") from None


def of_place(path: str) -> str:
    """What comes before the number of a line in the position of a record whose order is that of files: numbers in names by value."""
    return re.sub("[0-9]+", lambda digits: of_number(int(digits[0])), path) + " "


def sql(text: str) -> str:
    """SQL of the same position as ``of_text`` gives; null where that has to say it."""
    whole = f"ltrim({text}, '0')"
    clock = r"[12][0-9]{3}-[0-9]{2}-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|\+00(:00)?)?"
    micros = f"epoch_us(TRY_CAST({text} AS TIMESTAMPTZ))"
    return (
        f"CASE WHEN regexp_full_match({text}, '[0-9]{{1,{DIGITS}}}') THEN lpad({text}, {DIGITS}, '0') "
        f"WHEN regexp_full_match({text}, '[0-9]{{{DIGITS + 1},{_MOST}}}') THEN CASE WHEN length({whole}) > {DIGITS} "
        f"THEN 'A' || length({whole}) || {whole} ELSE lpad({whole}, {DIGITS}, '0') END "
        f"WHEN regexp_full_match({text}, '{clock}') AND {micros} >= 0 THEN lpad(CAST({micros} AS VARCHAR), {DIGITS}, '0') END"
    )
