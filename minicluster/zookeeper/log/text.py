"""An operation of ZooKeeper's log in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from minicluster.zookeeper.log.reader import Line


def operation_text(
    kind: str, path: str | None, version: int | None, data: str | None, error: str | None = None
) -> str:
    """An operation: what it did, to which znode, its version and text."""
    words = [kind, path or "", "" if version is None else f"v{version}", data or "", error or ""]
    return " ".join(filter(None, words))


def log_lines(lines: Iterator[tuple[int, Line]]) -> Iterator[str]:
    """A log for people: zxid, moment, the broker whose session it is, the part of a multi."""
    for _, line in lines:
        broker = "-" if line.get("broker") is None else str(line["broker"])
        place, count = line.get("multi") or ("", "")
        part = f"{place}/{count}" if place else ""
        yield f"{line['zxid']:>6} {_seconds(line)} {broker:>4} {part:>5}  {_text(line)}"


def _seconds(line: Mapping[str, Any]) -> str:
    return f"{line['ms'] / 1000:10.3f}s"


def _text(line: Mapping[str, Any]) -> str:
    text = operation_text(
        line["op"], line.get("path"), line.get("version"), line.get("raw"), line.get("error")
    )
    gone = line.get("deleted")
    return f"{text} deleted {', '.join(gone)}" if gone else text
