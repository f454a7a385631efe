"""A response that carries one error about a whole request, for every API and every version."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from minicluster.protocol import ErrorCode, Message, decode, encode
from minicluster.protocol.api_keys import APIS
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.error_responses.texts import TEXTS
from minicluster.protocol.messages.kip_texts import kip_497, kip_589, kip_704
from tests.protocol.values import error_codes, filled

RECORDED = Path(__file__).parents[1] / "data" / "error-responses" / "kafka.jsonl.gz"

# Kafka collects these in a hash map, so that their order is chance and repeated items are one.
UNORDERED = {"AlterUserScramCredentials", "Produce", "StopReplica", "WriteTxnMarkers"}
# 4.3 mends what 3.9 did: no text, null instead of empty records, topics without partitions.
ELSE_IN_3_9 = {"UnregisterBroker", "Fetch", "OffsetFetch"}

REQUESTS: dict[str, type[Message]] = {
    **{api.name: api.request for api in APIS.values()},
    "AlterIsr of KIP-497": kip_497.AlterIsrRequest,
    "AlterIsr of KIP-704": kip_704.AlterIsrRequest,
    "AlterReplicaState of KIP-589": kip_589.AlterReplicaStateRequest,
}

# Kafka's response to these carries no error at all.
WITHOUT_ERROR = {("DescribeLogDirs", version) for version in (0, 1, 2)}


@pytest.fixture(scope="module")
def recorded() -> dict[str, list[dict[str, Any]]]:
    """The recorded lines of each API."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in gzip.decompress(RECORDED.read_bytes()).splitlines():
        row = json.loads(line)
        found.setdefault(APIS[row["api_key"]].name, []).append(row)
    return found


def _comparable(name: str, value: Any) -> Any:
    """A value without the order of a hash map."""
    text = repr(value)
    if name not in UNORDERED:
        return text
    return sorted({*re.findall(r"\w+(?:_id|_name|name|index|user|error_\w+)=[^,()]+", text)})


@pytest.mark.parametrize("name", [api.name for api in APIS.values()])
def test_kafka_responds_so(name: str, recorded: dict[str, list[dict[str, Any]]]) -> None:
    """tests/data/error-responses: what the getErrorResponse methods of two releases return."""
    compared = 0
    for line in recorded[name]:
        if line["release"] == "3.9.0" and name in ELSE_IN_3_9:
            continue
        api, version = APIS[line["api_key"]], line["version"]
        request = decode(api.request, bytes.fromhex(line["request"]), version, rest_allowed=True)
        error = ErrorCode[line["error"]]
        made = encode(
            error_response(request, error, line["message"], version=version), version=version
        )
        theirs = decode(api.response, bytes.fromhex(line["response"]), version)
        ours = decode(api.response, made, version)
        where = f"{name} v{version} of {line['release']}: {request!r}"
        assert _comparable(name, ours) == _comparable(name, theirs), where
        compared += 1
    assert compared > 0, name


@pytest.mark.parametrize("name", REQUESTS)
def test_every_api_responds_with_an_error_in_every_version(name: str) -> None:
    for version in REQUESTS[name].valid_versions:
        request = filled(REQUESTS[name], version)
        assert decode(type(request), encode(request, version), version) == request
        response = error_response(request, ErrorCode.REQUEST_TIMED_OUT, "late", version=version)
        again = decode(type(response), encode(response, version), version)
        carries = ErrorCode.REQUEST_TIMED_OUT in set(error_codes(again))
        assert carries != ((name, version) in WITHOUT_ERROR), f"v{version}: {again!r}"


@pytest.mark.parametrize("error", [code for code in ErrorCode if code is not ErrorCode.NONE])
def test_every_error_code_has_its_text(error: ErrorCode) -> None:
    request = APIS[80].request()
    assert error_response(request, error, version=0).error_message == TEXTS[error]


def test_the_text_of_the_code_is_no_message_of_its_own() -> None:
    """ApiError.fromThrowable: a generic text is null in the response."""
    request = APIS[57].request()
    generic = TEXTS[ErrorCode.NOT_CONTROLLER]
    assert (
        error_response(request, ErrorCode.NOT_CONTROLLER, generic, version=1).error_message is None
    )
    own = error_response(request, ErrorCode.NOT_CONTROLLER, "not here", version=1)
    assert own.error_message == "not here"
