"""Every message of every version comes back from its bytes and from its JSON form."""

from __future__ import annotations

import json
import pickle
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minicluster.protocol import Message, decode, decode_prefix, encode
from minicluster.protocol.json_form import from_json, to_json, to_json_text
from minicluster.protocol.json_writer import RecordsForm
from tests.protocol.values import class_name, every_class, versioned

CLASSES = every_class()
RECORDS_FORMS: tuple[RecordsForm, ...] = get_args(RecordsForm)


@pytest.mark.parametrize("cls", CLASSES, ids=class_name)
@settings(
    max_examples=12,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_a_message_survives_bytes_and_json(cls: type[Message], data: Any) -> None:
    message, version = data.draw(versioned(cls))
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
