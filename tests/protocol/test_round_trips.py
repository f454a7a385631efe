"""Every message of every version comes back from its bytes and from its JSON form."""

from __future__ import annotations

import json
import pickle
from random import Random
from typing import get_args

import pytest

from minicluster.protocol import Message, decode, decode_prefix, encode
from minicluster.protocol.json_form import from_json, to_json, to_json_text
from minicluster.protocol.json_writer import RecordsForm
from tests.protocol.values import class_name, drawn, every_class

CLASSES = every_class()
RECORDS_FORMS: tuple[RecordsForm, ...] = get_args(RecordsForm)


@pytest.mark.parametrize("cls", CLASSES, ids=class_name)
def test_a_message_survives_bytes_and_json(cls: type[Message]) -> None:
    chance = Random(class_name(cls))
    for version in cls.valid_versions:
        for _ in range(2):
            check(drawn(cls, version, chance), version)


def check(message: Message, version: int) -> None:
    cls = type(message)
    encoded = encode(message, version)
    assert decode(cls, encoded, version) == message
    assert decode(cls, memoryview(encoded), version) == message
    assert decode_prefix(cls, b"ab" + encoded + b"cd", version, 2) == (message, len(encoded) + 2)
    assert from_json(cls, to_json(message, version), version) == message
    assert from_json(cls, to_json(message, version, defaults=True), version) == message
    for records in RECORDS_FORMS:
        shown = to_json(message, version, records=records)
        assert json.loads(to_json_text(message, version, records=records)) == shown


@pytest.mark.parametrize("cls", CLASSES, ids=class_name)
def test_a_message_of_defaults_can_be_hashed_and_copied(cls: type[Message]) -> None:
    message = cls()
    assert hash(message) == hash(cls())
    assert pickle.loads(pickle.dumps(message)) == message
    assert message == cls()
