"""Varints, uuids, error codes, the registry of APIs and what an import costs."""

from __future__ import annotations

import subprocess
import sys
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicluster.metadata.image import directory_id
from minicluster.protocol import ErrorCode, UnsupportedVersion, format_uuid, messages, parse_uuid
from minicluster.protocol import uuids as u
from minicluster.protocol.api_keys import APIS, BY_NAME
from minicluster.protocol.varint import decode_uvarint, encode_uvarint
from minicluster.protocol.versions import parse_versions


@given(st.integers(0, (1 << 32) - 1))
def test_an_unsigned_varint_comes_back(value: int) -> None:
    data = encode_uvarint(value)
    assert decode_uvarint(b"\xff" + data + b"\x01", 1) == (value, len(data) + 1)


def test_varints_have_the_bytes_of_the_specification() -> None:
    assert [encode_uvarint(n).hex() for n in (0, 127, 128, 300, 0xFFFF_FFFF)] == [
        "00", "7f", "8001", "ac02", "ffffffff0f",
    ]  # fmt: skip


@pytest.mark.parametrize("data", [b"\xff" * 5, b"\xff" * 4 + b"\x1f", b"\xff" * 20])
def test_a_varint_that_is_too_long_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="longer than 32 bits"):
        decode_uvarint(data, 0)
    for value in (-1, 1 << 32):
        with pytest.raises(ValueError, match="not an unsigned 32-bit number"):
            encode_uvarint(value)


@given(st.integers(0, (1 << 128) - 1))
def test_a_uuid_comes_back_from_kafkas_text(number: int) -> None:
    value = uuid.UUID(int=number)
    assert len(format_uuid(value)) == 22
    assert parse_uuid(format_uuid(value)) == value


def test_reserved_uuids_are_kafkas() -> None:
    assert format_uuid(u.ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert format_uuid(directory_id.MIGRATING) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert format_uuid(directory_id.UNASSIGNED) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert format_uuid(directory_id.LOST) == "AAAAAAAAAAAAAAAAAAAAAg"
    assert format_uuid(u.METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert [directory_id.is_reserved(uuid.UUID(int=n)) for n in (0, 99, 100)] == [True, True, False]


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 21 + "!", "ü" * 22, "A" * 44])
def test_a_text_that_is_no_uuid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="uuid"):
        parse_uuid(text)


def test_error_codes_are_kafkas() -> None:
    assert ErrorCode(-1) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert [code.value for code in ErrorCode] == list(range(-1, 134))
    assert int(ErrorCode.INELIGIBLE_REPLICA) == 107 and int(ErrorCode.NEW_LEADER_ELECTED) == 108
    assert ErrorCode.NOT_CONTROLLER.retriable and ErrorCode.FENCED_LEADER_EPOCH.retriable
    assert not ErrorCode.INVALID_UPDATE_VERSION.retriable
    assert not ErrorCode.NONE.retriable
    assert ErrorCode.name_of(77) == "STALE_BROKER_EPOCH"
    assert ErrorCode.name_of(999) == "UNKNOWN_CODE_999"


def test_a_code_of_a_later_release_is_an_unknown_server_error() -> None:
    """Every int16 that a response can carry is read (Errors.forCode, E42)."""
    known = {code.value: code for code in ErrorCode}
    for code in range(-(2**15), 2**15):
        assert ErrorCode.for_code(code) is known.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)


def test_every_api_has_both_classes_under_its_key() -> None:
    for key, api in APIS.items():
        assert api.request.api_key == api.response.api_key == key
        assert api.request.kind == "request" and api.response.kind == "response"
        assert api.request.valid_versions == api.response.valid_versions
    assert list(APIS) == sorted(APIS) == list(range(93))
    registered = {api.name for api in APIS.values()} | {"ListClientMetricsResources"}
    requests = {name for name in vars(messages) if name.endswith("Request")}
    assert {name.removesuffix("Request") for name in requests} == registered


@pytest.mark.parametrize(
    ("name", "version", "request_header", "response_header"),
    [
        ("ApiVersions", 0, 1, 0),
        ("ApiVersions", 4, 2, 0),
        ("Metadata", 8, 1, 0),
        ("Metadata", 9, 2, 1),
        ("AlterPartition", 0, 2, 1),
        ("SaslHandshake", 1, 1, 0),
        ("ControlledShutdown", 0, 0, 0),
        ("ControlledShutdown", 3, 2, 1),
    ],
)
def test_headers_are_of_the_version_that_kafka_uses(
    name: str, version: int, request_header: int, response_header: int
) -> None:
    api = BY_NAME[name]
    assert api.request_header_version(version) == request_header
    assert api.response_header_version(version) == response_header


def test_a_header_version_needs_a_version_that_exists() -> None:
    with pytest.raises(UnsupportedVersion):
        BY_NAME["Metadata"].request_header_version(99)


def test_version_ranges_are_read_as_declared() -> None:
    assert list(parse_versions("2-4")) == [2, 3, 4]
    assert list(parse_versions("3")) == [3]
    assert 32_767 in parse_versions("0+") and -1 not in parse_versions("0+")
    assert not parse_versions("none")


def test_importing_the_protocol_loads_neither_actors_nor_spark() -> None:
    code = (
        "import sys, minicluster.protocol, minicluster.protocol.messages, "
        "minicluster.protocol.records, minicluster.protocol.api_keys\n"
        "heavy = {'pykka', 'pyspark', 'numpy', 'pyarrow', 'rpds', 'hypothesis'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_message_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="UnheardOf"):
        _ = messages.UnheardOf  # type: ignore[attr-defined]
    assert "VoteRequest" in dir(messages)
