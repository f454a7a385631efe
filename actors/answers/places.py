"""The topics and partitions that a message names, and a response with errors for some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar
from uuid import UUID

from minicluster.protocol.api_keys import APIS
from minicluster.protocol.error_shape import NAMES, Each
from minicluster.protocol.schema import FieldSpec, Message, Struct
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.values import Value

_S = TypeVar("_S", bound=Struct)
_PARTITION = ("partition", "partition_index", "index", "partition_id")
# What a Fetch is not about any more, and where the partitions of a new topic are to be.
_NOT_NAMED = ("forgotten_topics_data", "assignments")


class Place(Value):
    """A topic by its name, by its id, or by both; partition is None where it names none."""

    topic: str | None
    topic_id: UUID | None
    partition: int | None = None


Keeps = Callable[[Place], bool]


def places(message: Struct) -> Iterator[Place]:
    """The places that a message names, in its order."""
    shape = _shape(type(message))
    topic = _topic(message, shape)
    named = False
    if topic is not None:
        for spec in shape.partitions:
            for item in getattr(message, spec.name) or ():
                named = True
                yield Place(topic.topic, topic.topic_id, _partition(item))
        if not named:
            yield topic
        return
    for spec in shape.names:
        for name in getattr(message, spec.name) or ():
            yield Place(name, None)
    for spec in shape.structs:
        for item in getattr(message, spec.name) or ():
            yield from places(item)


def kept(message: _S, keeps: Keeps) -> _S:
    """The message without the places that are not kept; a topic goes with its last partition."""
    shape = _shape(type(message))
    changed: dict[str, Any] = {}
    topic = _topic(message, shape)
    if topic is not None:
        for spec in shape.partitions:
            changed[spec.name] = tuple(
                item
                for item in getattr(message, spec.name) or ()
                if keeps(Place(topic.topic, topic.topic_id, _partition(item)))
            )
        return changed_to(message, changed)
    for spec in shape.names:
        items = getattr(message, spec.name)
        if items is not None:
            changed[spec.name] = tuple(name for name in items if keeps(Place(name, None)))
    for spec in shape.structs:
        items = getattr(message, spec.name)
        if items is not None:
            rest = (kept(item, keeps) for item in items if _is_kept(item, keeps))
            changed[spec.name] = tuple(rest)
    return changed_to(message, changed)


def _is_kept(item: Struct, keeps: Keeps) -> bool:
    if _topic(item, _shape(type(item))) is None:
        return True
    return any(map(keeps, places(item)))


def with_errors(response: Message, errors: Message) -> Any:
    """A response in which the items of another one, which have errors, are in place of its own.

    Items that the response does not have come behind those that it has.
    """
    return _with_items(response, errors, _arrays(response))


def has_items(errors: Message) -> bool:
    """A response that ``error_items`` has made has errors."""
    return any(getattr(errors, array) for array in _arrays(errors))


def _arrays(response: Message) -> Mapping[str, Each]:
    """The arrays of a response that have an item for each item of the request."""
    return APIS[response.api_key].error.inside


def _with_items(item: _S, errors: Struct, inside: Mapping[str, Each]) -> _S:
    changed = {}
    for name, each in inside.items():
        replaced = list(getattr(item, name) or ())
        for error in getattr(errors, name) or ():
            at = next((at for at, own in enumerate(replaced) if _is_same(own, error)), None)
            if at is None:
                replaced.append(error)
            elif each.inside:
                replaced[at] = _with_items(replaced[at], error, each.inside)
            else:
                names = {spec.name for spec in error.schema} & NAMES
                own = {field: getattr(replaced[at], field) for field in names}
                replaced[at] = changed_to(error, own)
        changed[name] = tuple(replaced)
    return changed_to(item, changed)


def _is_same(item: Struct, other: Struct) -> bool:
    """Two items name the same thing; one may have the topic's name, the other its id as well."""
    equal = 0
    for spec in item.schema:
        if spec.name in NAMES:
            names = getattr(item, spec.name), getattr(other, spec.name)
            if not all(map(_is_given, names)):
                continue
            if names[0] != names[1]:
                return False
            equal += 1
    return equal > 0


def _is_given(value: Any) -> bool:
    return not (value is None or value == "" or value == ZERO_UUID)


def changed_to(item: _S, values: Mapping[str, Any]) -> _S:
    """The structure with other values of some fields."""
    fields = {spec.name: getattr(item, spec.name) for spec in item.schema}
    return type(item)(**{**fields, **values})


class _Shape(Value):
    """The fields of a structure that say where it is about.

    Shapes:  topic, topic_id: of the structure of one topic; None: it is none. partitions: of such a
             structure. names: arrays of topics' names. structs: arrays to look into.
    """

    topic: str | None
    topic_id: str | None
    partitions: tuple[FieldSpec, ...]
    names: tuple[FieldSpec, ...]
    structs: tuple[FieldSpec, ...]


_shapes: dict[type[Struct], _Shape] = {}


def _shape(kind: type[Struct]) -> _Shape:
    shape = _shapes.get(kind)
    if shape is None:
        shape = _shapes[kind] = _shape_of(kind)
    return shape


def _shape_of(kind: type[Struct]) -> _Shape:
    is_item = not issubclass(kind, Message)
    topic = topic_id = None
    for spec in kind.schema if is_item else ():
        if spec.type_ == "string" and spec.entity == "topicName":
            topic = spec.name
        elif spec.type_ == "uuid" and spec.name == "topic_id":
            topic_id = spec.name
    arrays = [spec for spec in kind.schema if spec.type_ == "array" and spec.name not in _NOT_NAMED]
    return _Shape(
        topic=topic,
        topic_id=topic_id,
        partitions=tuple(spec for spec in arrays if _lists_partitions(spec)),
        names=tuple(
            spec for spec in arrays if spec.element == "string" and spec.entity == "topicName"
        ),
        structs=tuple(spec for spec in arrays if spec.struct is not None),
    )


def _lists_partitions(spec: FieldSpec) -> bool:
    if spec.struct is None:
        return spec.element == "int32" and "partition" in spec.name
    return any(inner.name in _PARTITION for inner in spec.struct.schema)


def _topic(item: Struct, shape: _Shape) -> Place | None:
    if shape.topic is None and shape.topic_id is None:
        return None
    name = None if shape.topic is None else getattr(item, shape.topic) or None
    topic_id = None if shape.topic_id is None else getattr(item, shape.topic_id)
    return Place(name, None if topic_id == ZERO_UUID else topic_id)


def _partition(item: Any) -> int:
    if isinstance(item, int):
        return item
    field = next(spec.name for spec in item.schema if spec.name in _PARTITION)
    number: int = getattr(item, field)
    return number
