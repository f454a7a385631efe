"""One seed: what is drawn goes to Kafka's controller and to ours, and is compared."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator

from tests.kafka.controllers.drawing import Workload, features_offered
from tests.kafka.jars import EARLIER_VERSION
from tests.kafka.program import LineProgram
from tests.kafka.side_by_side import Json, Played
from tests.transcripts.controller_player import FAULT, RULES, Player
from tests.transcripts.report import AGREE, Outcome

START_MS = 1_000_000
SESSION_TIMEOUT_MS = 6_000


def play(theirs: LineProgram, options: Namespace, seed: int) -> Played:
    """Play one seed, up to the first difference or with all of them."""
    lines = [_header(options, seed)]
    counts: Counter[str] = Counter()
    differences = []
    for outcome in _play(theirs, options, seed, lines):
        counts[outcome.operation] += 1
        if outcome.verdict != AGREE:
            differences.append(f"{outcome.where} {outcome.operation}\n{outcome.detail}")
            if not options.all:
                break
    return Played(name=_name(lines[0]), lines=lines, counts=counts, differences=differences)


def _play(
    theirs: LineProgram, options: Namespace, seed: int, lines: list[Json]
) -> Iterator[Outcome]:
    """Play the operations; fewer where the controller resigns over one."""
    [header] = lines
    theirs.start(header)  # with an empty log
    player = Player.of(header, RULES[options.kafka].as_shipped())
    is_earlier = options.kafka == EARLIER_VERSION
    work = Workload(
        seed,
        updates_features=options.features,
        deletes_topics=is_earlier or not options.elr or seed % 2 == 1,
        is_earlier=is_earlier,
    )
    now_ms, offset = START_MS, 0
    for number in range(options.count):
        now_ms += work.pause_ms()
        op, request = work.next(player.state, offset)
        command: Json = {"now_ms": now_ms, "op": op, "request": request}
        if op == "register_broker":
            command["features"] = features_offered(
                request, player.full_range, player.level, elr=player.elr_offered
            )
        done = theirs.send(command)
        offset = done["base_offset"] + len(done["records"])
        line = {"i": number, "now_ms": now_ms, "op": op, "request": request, **done}
        lines.append(line)
        yield player.step(line, "operation")
        if done.get("error") == FAULT:
            break  # the controller has resigned, and another one has no heartbeats
    state = theirs.send({"final_state": True})  # all brokers and partitions that the managers hold
    lines.append({"final_state": state})
    yield player.compare_final_state(state, "at the end")


def _header(options: Namespace, seed: int) -> Json:
    return {
        "kafka": options.kafka,
        "metadata_version": str(options.metadata_version),
        "metadata_version_level": options.metadata_version.level,
        "eligible_leader_replicas_version": int(options.elr),
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


def _name(header: Json) -> str:
    elr = "-elr" if header["eligible_leader_replicas_version"] else ""
    version, seed = header["metadata_version"], header["seed"]
    return f"kafka-{header['kafka']}-mv-{version}{elr}-seed-{seed}"
