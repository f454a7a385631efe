"""One seed: what is drawn goes to Kafka's controller and to ours, and is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from minicluster.metadata.metadata_version import MetadataVersion
from tests.kafka.controllers.drawing import Workload, features_offered
from tests.kafka.controllers.theirs import Theirs
from tests.kafka.jars import EARLIER_VERSION
from tests.transcripts.controller_player import FAULT, RULES, Player
from tests.transcripts.report import Outcome

Json = dict[str, Any]
START_MS = 1_000_000
SESSION_TIMEOUT_MS = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What a seed is played on."""

    kafka: str
    metadata_version: MetadataVersion
    elr: bool
    updates_features: bool

    def header(self, seed: int) -> Json:
        """The first line of a transcript."""
        return {
            "kafka": self.kafka,
            "metadata_version": str(self.metadata_version),
            "metadata_version_level": self.metadata_version.level,
            "eligible_leader_replicas_version": int(self.elr),
            "broker_session_timeout_ms": SESSION_TIMEOUT_MS,
            "cluster_id": "transcript",
            "default_replication_factor": 1,
            "default_num_partitions": 1,
            "static_config": {
                "min.insync.replicas": "1",
                "unclean.leader.election.enable": "false",
            },
            "seed": seed,
        }


def play(
    theirs: Theirs,
    release: Release,
    seed: int,
    operations: int,
    record: Callable[[Json], None] = lambda _: None,
) -> Iterator[Outcome]:
    """Play so many operations; fewer where the controller resigns over one."""
    header = release.header(seed)
    record(header)
    theirs.start(header)
    player = Player.of(header, RULES[release.kafka].as_shipped())
    is_earlier = release.kafka == EARLIER_VERSION
    work = Workload(
        seed,
        updates_features=release.updates_features,
        deletes_topics=is_earlier or not release.elr or seed % 2 == 1,
        is_earlier=is_earlier,
    )
    now_ms, offset = START_MS, 0
    for number in range(operations):
        now_ms += work.pause_ms()
        op, request = work.next(player.state, offset)
        command: Json = {"now_ms": now_ms, "op": op, "request": request}
        if op == "register_broker":
            command["features"] = features_offered(
                request, player.full_range, player.level, elr=player.elr_offered
            )
        done = theirs.decide(command)
        offset = done["base_offset"] + len(done["records"])
        line = {"i": number, "now_ms": now_ms, "op": op, "request": request, **done}
        record(line)
        yield player.step(line, f"seed {seed}")
        if done.get("error") == FAULT:
            break  # the controller has resigned, and another one has no heartbeats
    state = theirs.state()
    record({"final_state": state})
    yield player.compare_final_state(state, f"seed {seed}")
