"""The codec against the bytes of Kafka's own classes, and the runner that compares them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.wire.__main__ import main
from tests.wire.compare import compare, read_lines

DATA = Path(__file__).parents[1] / "data" / "wire"
FILES = ("kafka-3.9.2.jsonl.gz", "kafka-4.3.0.jsonl.gz")
LINES = {"kafka-3.9.2.jsonl.gz": (209, 2085), "kafka-4.3.0.jsonl.gz": (214, 1974)}


@pytest.mark.parametrize("name", FILES)
def test_every_message_of_a_release_agrees_in_every_version(name: str) -> None:
    tallies = compare(DATA / name)
    assert {n: t.differences for n, t in tallies.items() if t.differ} == {}
    assert [n for n, t in tallies.items() if t.not_declared] == []
    assert (len(tallies), sum(t.agree for t in tallies.values())) == LINES[name]


def _some_lines(name: str) -> list[dict[str, Any]]:
    return [line for line in read_lines(DATA / FILES[1]) if line["name"] == name]


def _write(path: Path, lines: list[dict[str, Any]]) -> str:
    path.write_bytes(gzip.compress("\n".join(json.dumps(line) for line in lines).encode()))
    return str(path)


def test_the_runner_succeeds_and_counts_what_agrees(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _write(tmp_path / "some.jsonl.gz", _some_lines("AlterPartitionRequest"))
    assert main([path, "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)["files"][0]
    assert report["total"] == {
        "messages": 1,
        "lines": 6,
        "agree": 6,
        "differ": 0,
        "not_declared": 0,
    }
    assert report["messages"][0]["versions"] == [2, 3]


def test_the_runner_fails_when_a_declared_message_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = _some_lines("AlterPartitionRequest")
    lines[0]["value"]["brokerEpoch"] += 1
    lines[1]["bytes"] += "00"
    assert main([_write(tmp_path / "some.jsonl.gz", lines)]) == 1
    out = capsys.readouterr().out
    assert "6 lines: 4 agree, 2 differ, 0 not declared" in out
    assert "1 bytes are left over" in out


def test_what_is_not_declared_is_counted_and_is_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = _some_lines("AlterPartitionRequest")[:2]
    lines[0]["name"] = "UnheardOfRequest"
    lines[1]["version"] = 9
    assert main([_write(tmp_path / "some.jsonl.gz", lines)]) == 0
    assert "0 agree, 0 differ, 2 not declared" in capsys.readouterr().out


def test_a_message_with_two_forms_of_one_version_agrees_with_either(tmp_path: Path) -> None:
    partition = {"partition": 1, "errorCode": 0, "errorMessage": None, "stateEpoch": 2}
    line = {
        "name": "ReadShareGroupStateSummaryResponse",
        "kind": "response",
        "api_key": 87,
        "version": 0,
        "flexible": True,
    }

    def whole(more: dict[str, int], tail: str) -> dict[str, Any]:
        topic = {"topicId": "AAAAAAAAAAAAAAAAAAAAAg", "partitions": [partition | more]}
        head = "02" + "00" * 15 + "02" + "02" + "00000001" + "0000" + "00" + "00000002"
        return line | {"value": {"results": [topic]}, "bytes": head + tail + "000000"}

    of_3_9 = whole({"startOffset": 9}, "0000000000000009")
    of_4_3 = whole({"leaderEpoch": 3, "startOffset": 9}, "00000003" + "0000000000000009")
    wrong = whole({"startOffset": 9}, "0000000000000008")
    assert main([_write(tmp_path / "a.jsonl.gz", [of_3_9, of_4_3])]) == 0
    assert main([_write(tmp_path / "b.jsonl.gz", [of_3_9, wrong])]) == 1


GOOD = b'{"name":"A","kind":"data","api_key":-1,"version":0,"flexible":true,"value":{},"bytes":'


@pytest.mark.parametrize(
    "content",
    [b"", b"{}\n", b"no json", b"[1]\n", b"\x1f\x8b\x00", GOOD + b'"0"}', GOOD + b"7}"],
)
def test_a_file_that_is_no_wire_file_is_one_clear_line(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    assert main([str(path)]) == 64
    error = capsys.readouterr().err
    assert "bad.jsonl" in error and error.count("\n") == 1


def test_a_file_that_does_not_exist_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "none.jsonl.gz")]) == 64
    assert capsys.readouterr().err.count("\n") == 1
