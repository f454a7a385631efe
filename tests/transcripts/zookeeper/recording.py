"""A recorded run: ZooKeeper's transactions, the requests between brokers, the script."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minicluster.errors import UserError
from tests.transcripts.report import read_lines, require

CONTROL_APIS = ("LEADER_AND_ISR", "STOP_REPLICA", "UPDATE_METADATA")
PROBE = "probe"
_START = re.compile(r"(?:start|ended) (\d+)")
_PAUSE = re.compile(r"(SIGSTOP|SIGCONT|SIGKILL|SIGTERM) (\d+)")


@dataclass(frozen=True, slots=True)
class Entry:
    """One operation of a transaction; a failed one is ``error`` with a code and no path."""

    op: str
    path: str = ""
    version: int = -1
    data: bytes | None = None
    ephemeral: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class Transaction:
    """One zxid."""

    zxid: int
    ms: int
    session: int
    broker: int | None
    entries: tuple[Entry, ...]
    is_multi: bool = False
    deleted: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """create_session, close_session or write."""
        op = self.entries[0].op
        return op if op in ("create_session", "close_session") else "write"

    @property
    def failed(self) -> bool:
        """Nothing of it took effect."""
        return any(entry.op == "error" for entry in self.entries)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request with its response, as the broker that served it logged it."""

    number: int
    received_ms: int
    ms: int
    broker: int
    client: str
    api: str
    version: int
    correlation_id: int
    controller_id: int | None
    controller_epoch: int | None
    request: dict[str, Any]
    response: dict[str, Any] | None

    @property
    def is_probe(self) -> bool:
        """A request that the script has made up."""
        return self.client == PROBE


@dataclass(slots=True)
class Recording:
    """All of a run."""

    path: Path
    summary: dict[str, Any]
    transactions: list[Transaction]
    requests: list[Recorded]
    pauses: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """From when to when each broker was stopped by a signal."""
    starts: dict[int, list[int]] = field(default_factory=dict)
    """When each broker was started, or had ended before a start."""

    def release_of(self, broker: int) -> str:
        """The release of a broker."""
        releases = self.summary.get("releases") or {}
        return str(releases.get(str(broker), self.summary["release"]))

    def is_paused(self, broker: int, ms: int) -> bool:
        """The broker is stopped by a signal at that time."""
        return any(start <= ms < end for start, end in self.pauses.get(broker, ()))


def load(path: Path) -> Recording:
    """Read the folder of a run.

    Errors:  UserError, a line that names the file and what is wrong with it.
    """
    if not (path / "summary.json").is_file():
        raise UserError(f"{path}: no zookeeper transcript: there is no summary.json in it")
    summary = json.loads((path / "summary.json").read_text())
    require(
        summary, ("release", "inter.broker.protocol.version", "settings"), f"{path}: the summary"
    )
    recording = Recording(
        path,
        summary,
        list(_transactions(path / "zk.jsonl.gz")),
        sorted(
            _requests(path / "requests.jsonl.gz"), key=lambda one: (one.received_ms, one.number)
        ),
    )
    _read_steps(recording, path / "steps.jsonl")
    return recording


def _transactions(path: Path) -> Iterator[Transaction]:
    lines: list[dict[str, Any]] = []
    for line in read_lines(path):
        require(line, ("zxid", "ms", "session", "op"), f"{path}: a line")
        if lines and lines[0]["zxid"] != line["zxid"]:
            yield _transaction(lines)
            lines = []
        lines.append(line)
    if lines:
        yield _transaction(lines)


def _transaction(lines: list[dict[str, Any]]) -> Transaction:
    first = lines[0]
    return Transaction(
        zxid=first["zxid"],
        ms=first["ms"],
        session=int(first["session"], 16),
        broker=first["broker"],
        entries=tuple(_entry(line) for line in lines),
        is_multi="multi" in first,
        deleted=tuple(first.get("deleted", ())),
    )


def _entry(line: dict[str, Any]) -> Entry:
    raw = line.get("raw")
    return Entry(
        op=line["op"],
        path=line.get("path", ""),
        version=line.get("version", -1),
        data=None if raw is None else raw.encode(),
        ephemeral=bool(line.get("ephemeral")),
        error=line.get("error", ""),
    )


def _requests(path: Path) -> Iterator[Recorded]:
    for number, line in enumerate(read_lines(path)):
        require(line, ("received_ms", "ms", "broker", "api", "version"), f"{path}: a line")
        yield Recorded(
            number=number,
            received_ms=line["received_ms"],
            ms=line["ms"],
            broker=line["broker"],
            client=line["client"],
            api=line["api"],
            version=line["version"],
            correlation_id=line["correlation_id"],
            controller_id=line.get("controller_id"),
            controller_epoch=line.get("controller_epoch"),
            request=line["request"],
            response=line.get("response"),
        )


def _read_steps(recording: Recording, path: Path) -> None:
    text = path.read_bytes()
    if text[:2] == b"\x1f\x8b":
        text = gzip.decompress(text)
    stopped: dict[int, int] = {}
    for line in text.decode().splitlines():
        step = json.loads(line)
        started = _START.fullmatch(step["do"])
        if started is not None:
            recording.starts.setdefault(int(started.group(1)), []).append(step["ms"])
        found = _PAUSE.fullmatch(step["do"])
        if found is None:
            continue
        signal, broker = found.group(1), int(found.group(2))
        if signal == "SIGSTOP":
            stopped[broker] = step["ms"]
        elif broker in stopped:
            pauses = recording.pauses.setdefault(broker, [])
            pauses.append((stopped.pop(broker), step["ms"]))
