"""The errors in a response of the trace, at any depth of its JSON form.

Most responses of Kafka have no error of the whole: each topic, partition or group has its own, so
the column ``error`` of the trace says NONE of an AlterPartition that was rejected. A quote within a
text is escaped, so nothing else in the JSON looks like one of these fields.
"""

from __future__ import annotations

import re

from minicluster.protocol.error_codes import ErrorCode

FIELD = r'"[A-Za-z]*[eE]rrorCode": ?(-?[0-9]+)'
_FIELD = re.compile(FIELD)
_NONE = "0"


def response_errors(response: str | None) -> list[str]:
    """The names of the errors in a response, each once, in their order."""
    codes = dict.fromkeys(_FIELD.findall(response or ""))
    return [ErrorCode.name_of(int(code)) for code in codes if code != _NONE]


def errors_in_sql(response: str) -> str:
    """The same as an expression of Spark's SQL over a column."""
    codes = f"array_distinct(regexp_extract_all({response}, r'{FIELD}', 1))"
    names = ", ".join(f"'{code.value}', '{code.name}'" for code in ErrorCode)
    name = f"coalesce(try_element_at(map({names}), code), concat('UNKNOWN_CODE_', code))"
    return f"transform(filter({codes}, code -> code <> '{_NONE}'), code -> {name})"
