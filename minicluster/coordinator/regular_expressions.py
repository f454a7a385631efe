"""Regular expressions of clients: topics that members subscribe with, transactional ids to list.

Kafka matches with RE2/J. The library here is RE2 itself, by Google: the same syntax, the same
errors, and a match in linear time, so no client's expression can stop a broker.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from minicluster.coordinator.runtime.shard import OperationError
from minicluster.protocol import ErrorCode

_DESCRIPTIONS = {  # RE2 -> RE2/J
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "unexpected )": "regexp/syntax: internal error",
    "trailing \\": "trailing backslash at end of expression",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


@lru_cache(maxsize=1_024)
def compiled(expression: str) -> Any:
    """A compiled expression.

    Errors:  INVALID_REGULAR_EXPRESSION, with the reason that RE2/J gives.
    """
    import re2  # not before a client has an expression

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        what = text.split(": ", 1)[0]
        described = _DESCRIPTIONS.get(what, what)
        raise OperationError(ErrorCode.INVALID_REGULAR_EXPRESSION, described) from error
