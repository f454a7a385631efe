"""Values of messages, built from their declarations: Hypothesis strategies and fixed ones."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from hypothesis import strategies as st

from minicluster.protocol import messages, records
from minicluster.protocol.messages.kip_texts import kip_497, kip_589, kip_704
from minicluster.protocol.messages.read_share_group_state_summary import (
    EarlyReadShareGroupStateSummaryResponse,
)
from minicluster.protocol.schema import FieldSpec, Message, Struct

KIP_TEXTS: tuple[type[Message], ...] = tuple(
    value
    for module in (kip_497, kip_589, kip_704)
    for value in vars(module).values()
    if isinstance(value, type) and issubclass(value, Message)
)


def every_class() -> list[type[Message]]:
    """Every message and record, in a fixed order."""
    found = [
        value
        for module in (messages, records)
        for _, value in sorted(vars(module).items())
        if isinstance(value, type) and issubclass(value, Message)
    ]
    return [*found, EarlyReadShareGroupStateSummaryResponse, *KIP_TEXTS]


def class_name(cls: type[Message]) -> str:
    """A name for test ids that no two classes share."""
    return f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}"


def _number(bits: int, signed: bool = True) -> st.SearchStrategy[int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.one_of(st.integers(0, min(high, 300)), st.integers(low, high))


_TEXT = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=12), st.just("x" * 127), st.just("ü" * 90)
)
_BYTES = st.one_of(st.binary(max_size=20), st.just(b"\x00" * 130))

PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "int8": _number(8),
    "int16": _number(16),
    "uint16": _number(16, signed=False),
    "int32": _number(32),
    "uint32": _number(32, signed=False),
    "int64": _number(64),
    "float64": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "uuid": st.integers(0, (1 << 128) - 1).map(lambda n: uuid.UUID(int=n)),
    "string": _TEXT,
    "bytes": _BYTES,
    "records": _BYTES,
}


Narrower = Callable[[FieldSpec], "st.SearchStrategy[Any] | None"]
"""The strategy of a field that should not hold just any value; None: any value will do."""


def field_values(
    spec: FieldSpec, version: int, narrower: Narrower | None = None
) -> st.SearchStrategy[Any]:
    """Values that a field may hold in a version."""
    one = narrower(spec) if narrower is not None else None
    if one is None and spec.struct is not None:
        one = structs(spec.struct, version, narrower)
    elif one is None:
        one = PLAIN[spec.element]
    found = one
    if spec.type_ == "array":
        found = st.lists(one, max_size=2).map(tuple)
    if version in spec.nullable:
        found = st.one_of(found, st.none())
    if version in spec.tagged:
        found = st.one_of(found, st.just(spec.default))
    return found


@cache
def structs(
    cls: type[Struct], version: int, narrower: Narrower | None = None
) -> st.SearchStrategy[Any]:
    """Structures whose fields of this version hold anything, and the others their default."""
    fields = {
        spec.name: field_values(spec, version, narrower)
        for spec in cls.schema
        if version in spec.versions
    }
    return st.fixed_dictionaries(fields).map(lambda values: cls(**values))  # builds reads hints


def versioned(cls: type[Message]) -> st.SearchStrategy[tuple[Message, int]]:
    """A message and a version that can carry it."""
    return st.sampled_from(cls.valid_versions).flatmap(
        lambda version: structs(cls, version).map(lambda message: (message, version))
    )


def filled(kind: type[Struct], version: int) -> Any:
    """A value with one item in every array of this version."""
    values: dict[str, Any] = {}
    for spec in kind.schema:
        if version not in spec.versions:
            continue
        if spec.type_ == "array":
            item = filled(spec.struct, version) if spec.struct else _plain(spec.element)
            values[spec.name] = (item,)
        elif spec.default is None and version not in spec.nullable:
            values[spec.name] = _plain(spec.element)
    return kind(**values)


def _plain(element: str) -> Any:
    return {"string": "orders", "bytes": b"x", "uuid": uuid.UUID(int=3)}.get(element, 3)


def error_codes(value: Any) -> Iterator[int]:
    """Every error code that a response carries."""
    for spec in value.schema if isinstance(value, Struct) else ():
        held = getattr(value, spec.name)
        if spec.name in ("error_code", "partition_error_code"):
            yield held
        elif spec.type_ == "array":
            for item in held or ():
                yield from error_codes(item)
