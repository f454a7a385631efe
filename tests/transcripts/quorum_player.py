"""Plays a transcript of Kafka's KRaft client against the quorum machine, step by step.

The event reaches the machine, which is then polled as often as Kafka's client was. Its draws,
requests, responses, writes and notifications are compared by the rules of the transcripts' README.
"""

from __future__ import annotations

import base64
import json
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from minicluster.effects import Respond
from minicluster.log.batch import RecordBatch
from minicluster.log.log import Log
from minicluster.log.quorum_state import QuorumState
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.uuids import format_uuid, parse_uuid
from minicluster.quorum import handlers, polling
from minicluster.quorum.effects import (
    Appended,
    Commit,
    LeaderChange,
    LoadBootstrap,
    LoadSnapshot,
    SendTo,
    Truncated,
)
from minicluster.quorum.errors import IllegalArgument, NotLeader
from minicluster.quorum.machine import QuorumMachine
from minicluster.quorum.settings import QuorumSettings
from minicluster.quorum.state.epoch_state import FollowerState
from minicluster.quorum.state.node import Draws
from minicluster.quorum.state.voters import Node, ReplicaKey, Voter, VoterEndpoint, VoterSet
from minicluster.rules import Rules
from tests.quorum.bootstrap import bootstrap_checkpoint
from tests.transcripts import quorum_forms as forms
from tests.transcripts.report import (
    AGREE,
    DIFFER,
    NOT_BUILT,
    NotBuilt,
    Outcome,
    read_lines,
    require,
)

STATE_FIELDS = (
    "role",
    "epoch",
    "leader",
    "voted",
    "high_watermark",
    "log_start",
    "log_end",
    "last_epoch",
    "snapshot",
    "fetching_snapshot",
    "kraft_version",
    "voters",
    "persisted",
    "running",
)

_HEADER_FIELDS = (
    "local_id",
    "listener",
    "kraft_version",
    "voters",
    "start_ms",
    "quorum_state",
    "log",
)


def play(path: Path) -> Iterator[Outcome]:
    """One outcome per step.

    Errors:  UserError, when the file is no such transcript.
    """
    lines = read_lines(path)
    header = next(lines)
    require(header, _HEADER_FIELDS, f"{path}: no quorum transcript: its first line")
    player = Player(header)
    for number, step in enumerate(lines, 2):
        require(step, ("i", "event", "state"), f"{path}: line {number} is no step: it")
        event = step["event"]
        operation = f"{event['kind']} {event.get('api', '')}".strip()
        where = f"{path.name.removesuffix('.jsonl.gz')}:{step['i']}"
        try:
            differences = player.step(step)
        except (NotBuilt, ProtocolError) as error:  # an event, an api or a field of another kind
            yield Outcome(operation, NOT_BUILT, where, str(error))
            continue
        except Exception as error:  # a machine that falls over differs; the rest is still played
            differences = [f"{type(error).__name__}: {error}"]
        detail = "\n".join(differences)
        if differences:
            detail += "\n" + json.dumps(event)[:2000]
        yield Outcome(operation, DIFFER if differences else AGREE, where, detail)


class Player:
    """The machine of one transcript, and what it did in the present step."""

    def __init__(self, header: dict[str, Any]) -> None:
        self.header = header
        self.now_ms = header["start_ms"]
        self.log = Log()
        self.stored = _quorum_state(header["quorum_state"], header["kraft_version"])
        self.election_draws: deque[int] = deque()
        self.bootstrap_draws: deque[int] = deque()
        self.missing_draws = 0
        self.ours: dict[int, int] = {}  # their correlation id -> ours
        self.open_theirs: list[tuple[int, int, str]] = []  # requests not yet sent by us
        self.open_ours: list[tuple[int, int, str]] = []
        self.refused: str | None = None
        self.returned: Any = None
        self._fill_log()
        self.machine = self._build()

    # --- building -------------------------------------------------------------------------------

    def _fill_log(self) -> None:
        for form in self.header["log"]:
            texts = [f"seed-0-{i}" for i in range(form["end"] - form["base"])]
            self.log.append(forms.text_batch(form["base"], form["epoch"], texts))
        self.log.flush()
        if self.header["snapshot"] is not None:
            content = bootstrap_checkpoint(self._voters(), self.header["kraft_version"])
            self.log.snapshots[tuple(self.header["snapshot"])] = content

    def _voters(self) -> VoterSet:
        return VoterSet.of(
            Voter(
                key=ReplicaKey(
                    voter["id"],
                    parse_uuid(voter["directory_id"])
                    if voter["in_voter_set_with_directory_id"]
                    else None,
                ),
                endpoints=(VoterEndpoint(self.header["listener"], voter["host"], voter["port"]),),
            )
            for voter in self.header["voters"]
        )

    def _build(self) -> QuorumMachine:
        header = self.header
        local = header["local_id"]
        return QuorumMachine(
            node_id=local,
            directory_id=parse_uuid(header["local_directory_id"]),
            cluster_id=header["cluster_id"],
            log=self.log,
            draws=Draws(self._draw_election, self._draw_bootstrap),
            voters=self._voters() if header["kraft_version"] == 0 else None,
            bootstrap_servers=[
                Node(each["id"], each["host"], each["port"]) for each in header["bootstrap_servers"]
            ],
            endpoints=(VoterEndpoint(header["listener"], f"node{local}", 9090 + local),),
            listener_name=header["listener"],
            persisted=self.stored,
            can_become_voter=header["can_become_voter"],
            settings=QuorumSettings(
                election_timeout_ms=header["election_timeout_ms"],
                fetch_timeout_ms=header["fetch_timeout_ms"],
                request_timeout_ms=header["request_timeout_ms"],
                retry_backoff_ms=header["retry_backoff_ms"],
                election_backoff_max_ms=header["election_backoff_max_ms"],
                append_linger_ms=header["append_linger_ms"],
                fetch_max_wait_ms=header["fetch_max_wait_ms"],
                fetch_max_bytes=header["fetch_max_bytes"],
                fetch_snapshot_max_bytes=header["fetch_snapshot_max_bytes"],
                auto_join=header["auto_join"],
                leaderless_pause_ms=0,
            ),
            rules=Rules.KAFKA_4_3.as_shipped(),
        )

    def _draw_election(self, bound: int) -> int:
        if not self.election_draws:
            self.missing_draws += 1
            return 0
        return self.election_draws.popleft()

    def _draw_bootstrap(self, bound: int) -> int:
        return self.bootstrap_draws.popleft() if self.bootstrap_draws else 0

    # --- one step -------------------------------------------------------------------------------

    def step(self, step: dict[str, Any]) -> list[str]:
        """Play one step; its differences from the recording."""
        draws = step["draws"]
        self.election_draws = deque(d["value"] for d in draws if d["of"] == "election")
        self.bootstrap_draws = deque(d["value"] for d in draws if d["of"] == "bootstrap")
        self.missing_draws = 0
        self.refused, self.returned = None, None
        event = step["event"]
        log_before = self.log.batches if event["kind"] != "start" else ()
        self._happen(event)
        self._poll(step["polls"])
        effects = self.machine.node.take_effects()
        self.stored = self.machine.persisted
        differences = list(self._compare_event(event))
        if self.election_draws or self.missing_draws:
            differences.append(
                f"election draws: {len(self.election_draws)} left, {self.missing_draws} missing"
            )
        differences += self._compare_requests(step, effects)
        differences += self._compare_responses(step, effects)
        differences += self._compare_log(step, effects, log_before)
        differences += self._compare_listener(step, effects)
        differences += self._compare_state(step)
        return differences

    def play_on(self, event: dict[str, Any], polls: int) -> None:
        """Play an event of which nothing was recorded."""
        self._happen(event)
        self._poll(polls)

    def _poll(self, count: int) -> None:
        for _ in range(count):
            if self.machine.node.running:
                polling.poll_once(self.machine.node, self.now_ms)

    def _happen(self, event: dict[str, Any]) -> None:
        api = event.get("api")
        happen = getattr(self, f"_on_{event['kind']}", None)
        if happen is None or (api is not None and api not in forms.APIS):
            raise NotBuilt(f"there is no {event['kind']} {api or ''}".rstrip())
        happen(event)

    def _on_start(self, event: dict[str, Any]) -> None:
        self.machine.node.register_listener("")
        polling.start(self.machine.node, self.now_ms)

    def _on_restart(self, event: dict[str, Any]) -> None:
        if event["lossy"]:
            self.log.lose_unflushed()
        else:
            self.log.flush()
        self.ours.clear()
        self.open_theirs, self.open_ours = [], []
        self.machine = self._build()
        self._on_start(event)

    def _on_advance(self, event: dict[str, Any]) -> None:
        self.now_ms += event["ms"]

    def _on_request(self, event: dict[str, Any]) -> None:
        api, version = event["api"], event["version"]
        request = forms.read_message(api, "Request", version, event["body"])
        token = (event["correlation"], api, version)
        self._arrive(handlers.handle_request, token, request, version)

    def _on_response(self, event: dict[str, Any]) -> None:
        correlation_id = self.ours.get(event["correlation"], -1)
        response = forms.read_message(event["api"], "Response", event["version"], event["body"])
        self._arrive(handlers.handle_response, correlation_id, response)

    def _on_disconnect(self, event: dict[str, Any]) -> None:
        correlation_id = self.ours.get(event["correlation"], -1)
        self._arrive(handlers.handle_failure, correlation_id)

    def _arrive(self, handle: Callable[..., None], *message: Any) -> None:
        self.machine.node.messages.append((handle, message))

    def _on_append(self, event: dict[str, Any]) -> None:
        records = [text.encode() for text in event["records"]]
        self._try(lambda: self.machine.append(event["epoch"], records, self.now_ms))

    def _on_resign(self, event: dict[str, Any]) -> None:
        self._try(lambda: self.machine.resign(event["epoch"]))

    def _on_upgrade_kraft_version(self, event: dict[str, Any]) -> None:
        epoch, version = event["epoch"], event["version"]
        only = event["validate_only"]
        self._try(
            lambda: self.machine.upgrade_kraft_version(
                epoch, version, self.now_ms, validate_only=only
            )
        )

    def _on_shutdown_gracefully(self, event: dict[str, Any]) -> None:
        self.machine.shutdown(event["timeout_ms"], self.now_ms)

    def _on_create_snapshot(self, event: dict[str, Any]) -> None:
        snapshot_id = (event["offset"], event["epoch"])
        content = base64.b64decode(event["bytes"]) if "bytes" in event else None
        self._try(
            lambda: self.machine.create_snapshot(snapshot_id, (), self.now_ms, content=content)
        )
        if self.returned and event["delete_before"]:
            self.machine.node.log.delete_before_snapshot(snapshot_id)

    def _try(self, action: Any) -> None:
        try:
            self.returned = action()
        except NotLeader:
            self.refused = "NotLeaderException"
        except IllegalArgument:
            self.refused = "IllegalArgumentException"

    # --- comparing ------------------------------------------------------------------------------

    def _compare_event(self, event: dict[str, Any]) -> Iterator[str]:
        named = event.get("error")
        if named == "InvalidUpdateVersionException":  # here an argument like any other
            named = "IllegalArgumentException"
        if named != self.refused:
            yield f"refused: Kafka {event.get('error')}, we {self.refused}"
        if "offset" in event and event["kind"] == "append" and event["offset"] != self.returned:
            yield f"last offset: Kafka {event['offset']}, we {self.returned}"
        if "created" in event and event["created"] != self.returned:
            yield f"snapshot created: Kafka {event['created']}, we {self.returned}"

    def _compare_requests(self, step: dict[str, Any], effects: list[Any]) -> Iterator[str]:
        theirs = {}
        for request in step["outbound"]["requests"]:
            body = _text(forms.comparable(request["body"]))
            self.open_theirs.append((request["correlation"], request["to"], request["api"]))
            theirs.setdefault((request["to"], request["api"], body), []).append(request)
        ours: dict[Any, list[SendTo]] = {}
        for effect in effects:
            if isinstance(effect, SendTo):
                api = forms.api_of(effect.request)
                body = _text(forms.comparable(forms.write_message(effect.request, effect.version)))
                self.open_ours.append((effect.correlation_id, int(effect.to), api))
                ours.setdefault((int(effect.to), api, body), []).append(effect)
        self._match()
        for key in sorted({*theirs, *ours}, key=str):
            if len(theirs.get(key, ())) != len(ours.get(key, ())):
                who = "Kafka" if key in theirs else "we"
                yield f"only {who} sent to {key[0]}: {key[1]} {key[2]}"

    def _match(self) -> None:
        """Pair our requests with theirs, by destination and api, in order."""
        for theirs in list(self.open_theirs):
            for ours in self.open_ours:
                if ours[1:] == theirs[1:]:
                    self.ours[theirs[0]] = ours[0]
                    self.open_theirs.remove(theirs)
                    self.open_ours.remove(ours)
                    break

    def _compare_responses(self, step: dict[str, Any], effects: list[Any]) -> Iterator[str]:
        theirs = {
            response["correlation"]: _text(forms.comparable(response["body"]))
            for response in step["outbound"]["responses"]
        }
        ours = {}
        for effect in effects:
            if isinstance(effect, Respond):
                correlation, _, version = effect.token
                form = forms.write_message(effect.response, version)
                ours[correlation] = _text(forms.comparable(form))
        for correlation in sorted({*theirs, *ours}):
            if theirs.get(correlation) != ours.get(correlation):
                yield (
                    f"response to {correlation}:\n  Kafka {theirs.get(correlation)}\n"
                    f"  we    {ours.get(correlation)}"
                )

    def _compare_log(
        self, step: dict[str, Any], effects: list[Any], before: tuple[RecordBatch, ...]
    ) -> Iterator[str]:
        truncated = [effect.end_offset for effect in effects if isinstance(effect, Truncated)]
        batches = [effect.batch for effect in effects if isinstance(effect, Appended)]
        if step["event"]["kind"] == "start":
            batches = [*self.log.batches[: len(self.header["log"])], *batches]
        if step["event"]["kind"] == "restart" and before != self.log.batches[: len(before)]:
            kept = self._kept(before)
            truncated = [kept] if kept < before[-1].next_offset else []
        log: dict[str, Any] = {}
        if truncated:
            log["truncated_to"] = truncated[-1]
        if batches:
            log["appended"] = [
                [b.base_offset, b.last_offset, b.leader_epoch, int(b.is_control)] for b in batches
            ]
        if log != step["log"]:
            yield f"log: Kafka {step['log']}, we {log}"

    def _kept(self, before: tuple[RecordBatch, ...]) -> int:
        after = self.log.batches
        kept = [batch for batch in before if batch in after]
        latest = self.log.latest_snapshot
        begin = max(before[0].base_offset, 0 if latest is None else latest[0])
        return kept[-1].next_offset if kept else begin

    def _compare_listener(self, step: dict[str, Any], effects: list[Any]) -> Iterator[str]:
        theirs: list[Any] = []
        for call in step["listener"]:
            if call["call"] == "commit":
                theirs.extend(("commit", *record) for record in forms.flatten(call["batches"]))
            elif call["call"] == "leader_change":
                theirs.append(("leader_change", call["leader"], call["epoch"]))
            else:
                records = tuple(call["records"])
                theirs.append((call["call"], call["offset"], call["epoch"], records))
        ours: list[Any] = []
        for effect in effects:
            if isinstance(effect, Commit):
                ours.extend(("commit", *record) for record in forms.flatten(effect.batches))
            elif isinstance(effect, LeaderChange):
                ours.append(("leader_change", effect.leader_id, effect.epoch))
            elif isinstance(effect, LoadSnapshot | LoadBootstrap):
                name = "load_snapshot" if isinstance(effect, LoadSnapshot) else "load_bootstrap"
                ours.append((name, *effect.snapshot_id, _snapshot_texts(effect.content)))
        if theirs != ours:
            yield f"listener:\n  Kafka {theirs}\n  we    {ours}"

    def _compare_state(self, step: dict[str, Any]) -> Iterator[str]:
        theirs, ours = step["state"], self._state()
        for name in STATE_FIELDS:
            if theirs[name] != ours[name]:
                yield f"state {name}: Kafka {theirs[name]}, we {ours[name]}"

    def _state(self) -> dict[str, Any]:
        machine = self.machine
        role = machine.node.role
        persisted = machine.persisted.to_json()
        persisted.pop("data_version")
        snapshot = machine.log.latest_snapshot
        download = role.fetching_snapshot if isinstance(role, FollowerState) else None
        return {
            "role": machine.role,
            "epoch": machine.epoch,
            "leader": machine.leader_id,
            "voted": None if role.voted is None else _key(role.voted),
            "high_watermark": machine.high_watermark,
            "log_start": machine.log.start_offset,
            "log_end": machine.log.end_offset,
            "last_epoch": machine.node.log.last_epoch,
            "snapshot": None if snapshot is None else list(snapshot),
            "fetching_snapshot": None
            if download is None
            else [*download.snapshot_id, len(download.content)],
            "kraft_version": machine.kraft_version,
            "voters": [_key(voter.key) for voter in machine.voters.voters],
            "persisted": persisted,
            "running": machine.is_running,
        }


def _quorum_state(form: dict[str, Any] | None, kraft_version: int) -> QuorumState | None:
    if form is None:
        return None
    return QuorumState.from_json({**form, "data_version": 0 if kraft_version == 0 else 1})


def _key(key: ReplicaKey) -> str:
    return str(key.id) if key.directory_id is None else f"{key.id}:{format_uuid(key.directory_id)}"


def _text(form: Any) -> str:
    return json.dumps(form, sort_keys=True)


def _snapshot_texts(content: bytes) -> tuple[str, ...]:
    texts: list[str] = []
    position = 0
    while position < len(content):
        batch = RecordBatch.decode(content, position)
        position += batch.size
        if not batch.is_control:
            texts.extend((record.value or b"").decode() for record in batch.records)
    return tuple(texts)
