"""The shape of a response that carries one error about a whole request.

By default the error is at the top of the response, with the given text. An API declares what Kafka
does besides: the items that repeat the error, other fields, another text. The shapes that several
APIs have are at the end of this module.

Source:  the getErrorResponse methods of Kafka's requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from msgspec import field

from minicluster.values import Value

NAMES = frozenset(
    {
        "entity_name",
        "entity_type",
        "group_id",
        "index",
        "name",
        "partition",
        "partition_index",
        "producer_id",
        "resource_name",
        "resource_type",
        "topic",
        "topic_id",
        "topic_name",
    }
)
"""The fields that identify the thing of an item."""


class Text(Enum):
    """The content of ``error_message``."""

    GIVEN = "the message of the exception, null where it has only the text of its code"
    OF_EXCEPTION = "the message of the exception, or the text of its code"
    OF_CODE = "the text of the code"
    DEFAULT = "the default of the field"


class Each(Value):
    """One item of a response for each item of the request.

    Shapes:  of names the request's arrays, in order, with dots for arrays within arrays. Fields
             that name a thing (``NAMES``) are copied, also from the owners of the array; copies
             maps further fields of the response to the request's. plain is the field for an item
             that is not a structure. inside has the arrays within the item, values its fields with
             fixed content. distinct leaves repeated items out, filled those without inner items.
             Where nulls are no option, a null of the request becomes the default.
    """

    of: tuple[str, ...]
    plain: str = ""
    copies: Mapping[str, str] = field(default_factory=dict)
    inside: Mapping[str, Each] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    text: Text = Text.GIVEN
    versions: str = "0+"
    distinct: bool = False
    filled: bool = False
    nulls: bool = True


class ErrorShape(Value):
    """One API's: the arrays of its response, further fields at the top, and the text.

    Shapes:  inside: the items of each array of the response. values: fields with fixed content.
             copies: fields of the response, and of the request that they are copied from.
    """

    inside: Mapping[str, Each] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)
    text: Text = Text.GIVEN


def described(of: str, id_field: str, name: str) -> ErrorShape:
    """One description for each id that the request lists."""
    return ErrorShape({name: Each((of,), plain=id_field, text=Text.DEFAULT)})


def partition_indexes(of: str = "partitions", **more: Any) -> Each:
    """Partitions that the request lists as plain numbers."""
    return Each((of,), plain="partition_index", **more)


def share_states(text: Text) -> ErrorShape:
    """The share coordinator's APIs: topics and their partitions."""
    partitions = Each(("partitions",), text=text)
    return ErrorShape({"results": Each(("topics",), inside={"partitions": partitions})})


TEXT_OF_CODE = ErrorShape(text=Text.OF_CODE)
NO_TEXT = ErrorShape(text=Text.DEFAULT)
OF_TOPICS = ErrorShape({"topics": Each(("topics",), inside={"partitions": Each(("partitions",))})})
"""Topics and their partitions, as the request has them."""
