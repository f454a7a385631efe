"""Plays transcripts of partitions and of AlterPartition managers, by the rules as shipped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from minicluster.errors import UserError
from minicluster.rules import Rules
from tests.transcripts.manager_player import ManagerPlayer, compare_manager
from tests.transcripts.partition_player import PartitionPlayer, compare_partition
from tests.transcripts.report import (
    AGREE,
    DIFFER,
    NOT_BUILT,
    NotBuilt,
    Outcome,
    read_lines,
    require,
)

RULES = {"4.3.0": Rules.KAFKA_4_3, "3.9.2": Rules.KAFKA_3_9}
_PLAYERS: Mapping[str, tuple[Callable[..., Any], Callable[..., list[str]], str]] = {
    "partition": (PartitionPlayer, compare_partition, ""),
    "alter_partition_manager": (ManagerPlayer, compare_manager, "manager: "),
}


def play(path: Path, rules: Rules | None = None) -> Iterator[Outcome]:
    """Play one file. A difference does not end it, but what follows may differ because of it.

    Errors:  UserError for a file that is no such transcript.
    """
    header, *lines = read_lines(path)
    kind = str(header.get("transcript"))
    if kind not in _PLAYERS:
        raise UserError(f"{path}: no partition transcript; its first line has another kind")
    player_of, compare, prefix = _PLAYERS[kind]
    release = RULES.get(str(header.get("kafka")), Rules.KAFKA_4_3)
    player = player_of(header, release.as_shipped() if rules is None else rules)
    for number, line in enumerate(lines, 2):
        require(line, ("i", "event", "now_ms", "state"), f"{path}: line {number} is no step: it")
        event, where = line["event"], f"{path.name} i={line['i']}"
        try:
            differences = compare(line, player.play(line))
        except NotBuilt as unknown:
            yield Outcome(prefix + event["kind"], NOT_BUILT, where, str(unknown))
            continue
        except Exception as error:  # an exception is a difference
            differences = [f"{type(error).__name__}: {error}"]
        yield Outcome(
            operation=prefix + event["kind"],
            verdict=DIFFER if differences else AGREE,
            where=where,
            detail="\n".join([json.dumps(event), *differences]) if differences else "",
        )
