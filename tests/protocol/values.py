"""Values of messages, built from their declarations: drawn by chance, and fixed ones."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

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


Draw = Callable[[Random], Any]


def _number(bits: int, *, signed: bool = True) -> Draw:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def draw(chance: Random) -> int:
        small = chance.randint(0, min(high, 300))
        return chance.choice((small, small, chance.randint(low, high), low, high))

    return draw


def _text(chance: Random) -> str:
    short = "".join(chance.choice("aé√𝄞\0\n") for _ in range(chance.randrange(13)))
    return chance.choice((short, short, "", "x" * 127, "ü" * 90))


def _bytes(chance: Random) -> bytes:
    return chance.choice((chance.randbytes(chance.randrange(21)), b"", b"\x00" * 130))


def _float(chance: Random) -> float:
    return chance.choice((0.0, -1.5, chance.uniform(-1e9, 1e9), 5e-324, 1e308))


PLAIN: dict[str, Draw] = {
    "int8": _number(8),
    "int16": _number(16),
    "uint16": _number(16, signed=False),
    "int32": _number(32),
    "uint32": _number(32, signed=False),
    "int64": _number(64),
    "float64": _float,
    "boolean": lambda chance: chance.random() < 0.5,
    "uuid": lambda chance: uuid.UUID(int=chance.getrandbits(128)),
    "string": _text,
    "bytes": _bytes,
    "records": _bytes,
}


def drawn(cls: type[Struct], version: int, chance: Random) -> Any:
    """A structure whose fields of this version hold anything, and the others their default."""

    def value(spec: FieldSpec) -> Any:
        if version in spec.nullable and chance.random() < 0.3:
            return None
        if version in spec.tagged and chance.random() < 0.3:
            return spec.default
        if spec.type_ == "array":
            return tuple(one(spec) for _ in range(chance.randrange(3)))
        return one(spec)

    def one(spec: FieldSpec) -> Any:
        if spec.struct is not None:
            return drawn(spec.struct, version, chance)
        return PLAIN[spec.element](chance)

    return cls(**{spec.name: value(spec) for spec in cls.schema if version in spec.versions})


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
