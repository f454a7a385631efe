"""The codec against two other ones, kio and kafka-python, on generated values.

Our bytes are read by the library and written again: they must come back unchanged. Of what kio has
read, fields with the same name and a plain type must also hold the same values. Values stay within
what the libraries can hold: kio makes error codes, times and topic ids into types of its own.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import pkgutil
import uuid
from collections.abc import Iterator
from random import Random
from typing import Any

import kio.serial
import pytest
from kafka.protocol.api_message import ApiMessage
from kio.index import load_entity_schema
from kio.schema.index import schema_name_map

from minicluster.protocol import ErrorCode, Message, encode
from minicluster.protocol.messages import AlterPartitionRequest
from minicluster.protocol.schema import FieldSpec, Struct
from tests.protocol.values import KIP_TEXTS, Draw, drawn, every_class

CLASSES = {cls.__name__: cls for cls in every_class() if cls not in KIP_TEXTS}

EACH = 4  # messages of a version


def narrow(spec: FieldSpec) -> Draw | None:
    """Values that kio can hold."""
    if spec.element == "int16" and spec.name.endswith("error_code"):
        return lambda chance: int(chance.choice([*ErrorCode]))
    if spec.element == "int64":
        return lambda chance: chance.randint(0, 1 << 40)
    if spec.element == "int32" and spec.name.endswith("_ms"):
        return lambda chance: chance.randint(0, 1 << 30)
    if spec.element == "uuid":
        return lambda chance: uuid.UUID(int=chance.getrandbits(128) | 1)
    return None


def _same_values(ours: Struct, theirs: Any) -> int:
    """The number of plain fields compared; any that differs fails."""
    names = {field.name for field in dataclasses.fields(theirs)}
    compared = 0
    for spec in ours.schema:
        if spec.name not in names:
            continue
        mine, other = getattr(ours, spec.name), getattr(theirs, spec.name)
        if spec.type_ == "array" and spec.struct is not None and mine is not None:
            pairs = zip(mine, other, strict=True)
            compared += sum(_same_values(one, two) for one, two in pairs)
        elif type(other) in (int, str, bool, bytes, float):
            assert mine == other, spec.name
            compared += 1
    return compared


@pytest.mark.parametrize("name", sorted(schema_name_map))
def test_kio_reads_and_writes_the_same_bytes(name: str) -> None:
    chance = Random(name)
    for version, kinds in schema_name_map[name].items():
        for kind in kinds:
            theirs: Any = load_entity_schema(name, version, kind)
            cls: type[Message] = CLASSES[theirs.__name__]
            assert version in cls.valid_versions
            reader, writer = kio.serial.entity_reader(theirs), kio.serial.entity_writer(theirs)
            for _ in range(EACH):
                message = drawn(cls, version, chance, narrow)
                data = encode(message, version)
                entity, size = reader(data, 0)
                out = io.BytesIO()
                writer(out, entity)
                assert size == len(data)
                assert out.getvalue() == data
                _same_values(message, entity)


def test_values_are_compared_and_not_only_bytes() -> None:
    cls = AlterPartitionRequest
    theirs: Any = load_entity_schema(
        "alter_partition", 3, next(iter(schema_name_map["alter_partition"][3]))
    )
    message = cls(broker_id=4, broker_epoch=9)
    entity, _ = kio.serial.entity_reader(theirs)(encode(message, 3), 0)
    assert _same_values(message, entity) == 2
    with pytest.raises(AssertionError):
        _same_values(cls(broker_id=5, broker_epoch=9), entity)


def _messages_of_kafka_python() -> dict[str, Any]:
    for name in ("admin", "consumer", "metadata", "producer", "sasl"):
        package = importlib.import_module(f"kafka.protocol.{name}")
        for module in pkgutil.iter_modules(getattr(package, "__path__", [])):
            importlib.import_module(f"{package.__name__}.{module.name}")

    def below(cls: Any) -> Iterator[Any]:
        for inner in cls.__subclasses__():
            if getattr(inner, "_json", None):
                yield inner
            yield from below(inner)

    return {cls.__name__: cls for cls in below(ApiMessage) if cls.__name__ in CLASSES}


KAFKA_PYTHON = _messages_of_kafka_python()
# Its decode tries version 0 first, whatever the version is, and then writes what that had.
READ_OTHERWISE = {"ApiVersionsResponse"}


@pytest.mark.parametrize("name", sorted(KAFKA_PYTHON.keys() - READ_OTHERWISE))
def test_kafka_python_reads_and_writes_the_same_bytes(name: str) -> None:
    cls, theirs = CLASSES[name], KAFKA_PYTHON[name]
    chance = Random(name)
    first, last = theirs.valid_versions
    versions = range(max(first, cls.valid_versions.start), last + 1)
    assert versions and versions[-1] in cls.valid_versions
    for version in versions:
        for _ in range(EACH):
            data = encode(drawn(cls, version, chance), version)
            read = theirs.decode(data, version=version)
            read._header = None  # encode needs it, decode leaves it unset
            assert read.encode(version=version) == data


def test_kafka_python_brings_a_hundred_messages() -> None:
    assert len(KAFKA_PYTHON) > 100
