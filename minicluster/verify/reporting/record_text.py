"""A record of the metadata log in one line."""

from __future__ import annotations

from typing import Any

from minicluster.protocol.json_form import to_json

_OF_PARTITION = ("topicId", "partitionId", "directories")


def describe(record: Any, version: int, where: str = "") -> str:
    """A record in one line, without what it leaves as it was.

    Shapes:  where: the partition by its topic's name, in place of ids.
    """
    value = to_json(record, version)
    if where:
        value = {name: field for name, field in value.items() if name not in _OF_PARTITION}
    fields = " ".join(
        f"{name}={_short(field)}" for name, field in value.items() if field not in (None, [])
    )
    name = type(record).__name__.removesuffix("Record")
    return " ".join(filter(None, [name, where, fields]))


def _short(value: Any) -> str:
    if isinstance(value, list):
        if len(value) > 8 or any(isinstance(item, dict) for item in value):
            return f"[{len(value)}]"
        return "[" + ",".join(_short(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{…}"
    return str(value)
