"""The SQL functions a topology may call: Spark built-ins that are deterministic functions of one row.

A run must give the same rows when it is repeated, and one row's result may not depend on other rows: an allow-list, so a
function that nobody thought of is refused. Session settings that functions depend on (time zone, ANSI mode) are
pinned where sessions are made. Names are compared as written, without regard to case.
"""

from typing import Final

_CONDITIONS = """
    coalesce nvl nvl2 ifnull nullif nullifzero zeroifnull if equal_null isnull isnotnull isnan nanvl greatest least decode
"""
_TEXT = """
    ascii base64 bit_length btrim char char_length character_length chr concat concat_ws contains decode elt encode endswith
    find_in_set format_number format_string initcap instr lcase left len length levenshtein like locate lower lpad ltrim luhn_check
    mask octet_length overlay position printf regexp regexp_count regexp_extract regexp_instr regexp_like regexp_replace
    regexp_substr repeat replace reverse right rlike rpad rtrim soundex space split split_part startswith substr
    substring substring_index to_binary to_char to_number to_varchar translate trim try_to_binary try_to_number ucase unbase64
    upper url_decode url_encode try_url_decode parse_url try_parse_url is_valid_utf8 make_valid_utf8 ilike
"""
_NUMBERS = """
    abs acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling conv cos cosh cot csc degrees div e exp expm1 factorial
    floor hex hypot ln log log10 log1p log2 mod negative pi pmod positive pow power radians rint round sec shiftleft
    shiftright shiftrightunsigned sign signum sin sinh sqrt tan tanh try_add try_divide try_mod try_multiply try_subtract
    unhex width_bucket bit_count bit_get getbit
"""
_TIME = """
    add_months convert_timezone date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
    dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp hour last_day
    make_date make_timestamp make_timestamp_ltz make_timestamp_ntz minute month monthname months_between next_day quarter second
    timestamp timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff to_date to_timestamp
    to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc try_to_timestamp try_to_date unix_date unix_micros
    unix_millis unix_seconds unix_timestamp weekday weekofyear year
"""
_HASHES = "crc32 hash md5 sha sha1 sha2 xxhash64"
_ARRAYS_AND_JSON = """
    array array_contains array_join array_max array_min array_position cardinality element_at get get_json_object json_array_length
    map_keys map_values size slice sort_array try_element_at
"""
_CASTS = "cast try_cast bigint binary boolean decimal double float int string"

_TIME_FUNCTIONS: Final = frozenset(_TIME.split())
ALLOWED: Final = frozenset(f"{_CONDITIONS} {_TEXT} {_NUMBERS} {_TIME} {_HASHES} {_ARRAYS_AND_JSON} {_CASTS}".split())

_TEXT_OF_OTHER = (
    "date_format dayname from_unixtime monthname bin conv hex decode string array_join element_at get get_json_object try_element_at"
)
TEXT_FUNCTIONS: Final = frozenset(f"{_TEXT} {_TEXT_OF_OTHER}".split())
"""Functions that may make a new text of their arguments."""

NEEDS_ARGUMENT: Final = frozenset({"unix_timestamp"})
"""Allowed, but without an argument they mean the present moment."""

_KEYWORDS = """
    current_catalog current_database current_date current_role current_schema current_time current_timestamp current_timezone
    current_user localtime localtimestamp session_user user
"""
KEYWORD_FUNCTIONS: Final = frozenset(_KEYWORDS.split())
"""Functions that are called without parentheses."""

_OPERATORS = "and or not in between when then else case escape from for is distinct"
OPERATORS: Final = frozenset(_OPERATORS.split())
"""Words before a parenthesis that are no call."""

QUANTIFIERS: Final = frozenset(("any", "all", "some"))
"""No call after LIKE."""

SPECIAL_DATES: Final = frozenset({"now", "today", "tomorrow", "yesterday"})
"""Texts that Spark turns into the present day where it casts them to a date or timestamp."""

_REASONS: Final = {
    "it gives another result each time": """
        rand random randn randstr uniform uuid shuffle now curdate getdate current_date current_timestamp current_time
        current_timezone localtime localtimestamp monotonically_increasing_id spark_partition_id input_file_name
        input_file_block_start input_file_block_length aes_encrypt""",
    "it depends on the session, not on the row": """
        current_user current_database current_schema current_catalog session_user user version current_role
        current_path session_window is_account_group_member is_member""",
    "it runs code that rejoin cannot check": "reflect java_method try_reflect transform_keys transform_values",
    "it is an aggregate over many rows": """
        sum avg mean min max count count_if first last first_value last_value any_value any all some every bool_and bool_or
        collect_list collect_set array_agg listagg string_agg median mode percentile percentile_approx approx_percentile
        approx_count_distinct std stddev stddev_pop stddev_samp variance var_pop var_samp corr covar_pop covar_samp
        max_by min_by bit_and bit_or bit_xor kurtosis skewness histogram_numeric grouping grouping_id try_sum try_avg
        regr_count regr_slope regr_intercept regr_r2""",
    "it makes several rows of one": "explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple",
    "it is a window function over many rows": """
        row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value window window_time""",
    "it takes a lambda": "transform filter exists forall aggregate reduce zip_with map_filter map_zip_with array_sort",
}
UNKNOWN: Final = "it is not one of the deterministic built-in functions that rejoin knows"
_WHY: Final = {name: reason for reason, names in _REASONS.items() for name in names.split()}


def refusal(name: str) -> str | None:
    """Why a function may not be called, as the end of a sentence; None if it may."""
    name = name.lower()
    if name in ALLOWED:
        return None
    return _WHY.get(name, UNKNOWN)


def is_about_time(name: str) -> bool:
    """Whether a function casts text arguments to dates or timestamps."""
    return name.lower() in _TIME_FUNCTIONS
