"""Regular expressions that members subscribe with: checked, then resolved to topics.

Kafka matches with RE2/J. The library here is RE2 itself, by Google: the same syntax, the same
refusals, and a match in linear time, so no member's expression can stop a broker.

Source:  TopicRegexResolver, Utils.throwIfRegularExpressionIsInvalid.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from minicluster.coordinator.runtime.shard import OperationError
from minicluster.lazy_dataclass import dataclass
from minicluster.metadata.image.metadata_image import MetadataImage
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


@dataclass(frozen=True, slots=True)
class ResolvedRegularExpression:
    """The topics that an expression matches.

    Units:   version is the offset of the metadata, time_ms the time of the match.
    """

    topics: frozenset[str]
    version: int
    time_ms: int


UNRESOLVED = ResolvedRegularExpression(frozenset(), -1, -1)


@lru_cache(maxsize=1_024)
def _compiled(expression: str) -> Any:
    import re2  # not before a member subscribes with an expression

    options = re2.Options()
    options.log_errors = False
    return re2.compile(expression, options)


def validate(expression: str) -> None:
    """Compile an expression.

    Errors:  INVALID_REGULAR_EXPRESSION.
    """
    import re2

    try:
        _compiled(expression)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        what = text.split(": ", 1)[0]
        raise OperationError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{expression}` is not a valid regular expression: "
            f"{_DESCRIPTIONS.get(what, what)}.",
        ) from error


def resolve(
    expressions: Iterable[str], image: MetadataImage, version: int, now_ms: int
) -> dict[str, ResolvedRegularExpression]:
    """The topics of each expression; a topic matches with its whole name."""
    names = [topic.name for topic in image.topics]
    return {
        expression: ResolvedRegularExpression(
            frozenset(name for name in names if _compiled(expression).fullmatch(name)),
            version,
            now_ms,
        )
        for expression in expressions
    }
