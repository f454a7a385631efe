"""The transaction log of ZooKeeper in a run folder: ``zookeeper/log.jsonl`` as rows of tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from minicluster.errors import UserError
from minicluster.files import UnusableFile, read_bytes
from minicluster.protocol.errors import ProtocolError
from minicluster.verify.evidence.run_header import RunHeader
from minicluster.zookeeper.log.reader import Line, Named, ZnodeLogReader

LOG_PATH = "zookeeper/log.jsonl"


class DamagedZnodeLog(UserError):
    """The log of a run on ZooKeeper is not there, or holds what no such log does."""


def read_znodes(path: Path, name: str, header: RunHeader) -> tuple[Named, ...]:
    """The log of the run at a path as rows.

    Errors:  DamagedZnodeLog, a line that names the file and what is wrong with it.
    """
    assert header.protocol is not None
    checked = header.ineligible_members_rejected
    reader = ZnodeLogReader(header.protocol, run=name, members_checked=checked)
    rows: list[Named] = []
    last_ms = 0
    for number, line in lines_of(path / LOG_PATH):
        try:
            rows += reader.take(line)
            last_ms = int(line["ms"])
        except (ProtocolError, KeyError, TypeError, ValueError, AttributeError) as error:
            why = f"{type(error).__name__}: {error}"
            raise DamagedZnodeLog(f"{path / LOG_PATH}: line {number}: {why}") from None
    rows += reader.end(header.ended_at_ms or last_ms)
    return tuple(rows)


def lines_of(file: Path) -> Iterator[tuple[int, Line]]:
    """The lines of a log, each with its number.

    Errors:  DamagedZnodeLog, a line that names the file and what is wrong with it.
    """
    try:
        text = read_bytes(file).decode()
    except UnusableFile as error:
        raise DamagedZnodeLog(str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DamagedZnodeLog(f"{file}: cannot be read: {error}") from None
    for number, line in enumerate(text.splitlines(), 1):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DamagedZnodeLog(f"{file}: line {number} is no JSON: {error}") from None
        if not isinstance(value, dict):
            raise DamagedZnodeLog(f"{file}: line {number} is no JSON object")
        yield number, value
