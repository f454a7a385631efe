"""Regular expressions that members subscribe with: checked, then resolved to topics.

Source:  TopicRegexResolver, Utils.throwIfRegularExpressionIsInvalid.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from minicluster.coordinator.regular_expressions import compiled
from minicluster.coordinator.runtime.shard import OperationError
from minicluster.metadata.image.metadata_image import MetadataImage


@dataclass(frozen=True, slots=True)
class ResolvedRegularExpression:
    """The topics that an expression matches.

    Units:   version is the offset of the metadata, time_ms the time of the match.
    """

    topics: frozenset[str]
    version: int
    time_ms: int


UNRESOLVED = ResolvedRegularExpression(frozenset(), -1, -1)


def validate(expression: str) -> None:
    """Compile an expression.

    Errors:  INVALID_REGULAR_EXPRESSION.
    """
    try:
        compiled(expression)
    except OperationError as refusal:
        raise OperationError(
            refusal.error,
            f"SubscribedTopicRegex `{expression}` is not a valid regular expression: "
            f"{refusal.message}.",
        ) from refusal


def resolve(
    expressions: Iterable[str], image: MetadataImage, version: int, now_ms: int
) -> dict[str, ResolvedRegularExpression]:
    """The topics of each expression; a topic matches with its whole name."""
    names = [topic.name for topic in image.topics]
    return {
        expression: ResolvedRegularExpression(
            frozenset(name for name in names if compiled(expression).fullmatch(name)),
            version,
            now_ms,
        )
        for expression in expressions
    }
