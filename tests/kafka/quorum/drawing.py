"""Events of a node of a quorum, drawn from a seed, from its state and from what its peers do.

Peers keep Raft's promises, for they are machines of ours on links that delay, lose and are cut.
Beside what they send, the node gets requests again that it has had, with one thing changed.
"""

from __future__ import annotations

import base64
import copy
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

from minicluster.log.log import Log
from minicluster.protocol import format_uuid
from minicluster.protocol.messages import RemoveRaftVoterRequest
from tests.kafka.quorum.peers import SMALL_SNAPSHOT_PIECE, Peers
from tests.quorum.bootstrap import bootstrap_checkpoint
from tests.quorum.chaos import add_request
from tests.quorum.network import CLUSTER_ID, LISTENER, directory_of
from tests.transcripts import quorum_forms as forms

Json = dict[str, Any]
START_MS = 1_000
TOPIC = "__cluster_metadata"
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
REMEMBERED = 60
# What can be wrong in a request. Nothing by which a node would believe what no peer has promised:
# a leader that was not elected, a log that is longer than it is.
OF_ANY = ("clusterId", "voterId", "voterDirectoryId", "partition", "partitionIndex", "topicName")
CHANGED = {
    "VOTE": (*OF_ANY, "preVote", "replicaEpoch", "replicaDirectoryId", "lastOffset", "replicaId"),
    "BEGIN_QUORUM_EPOCH": (*OF_ANY, "leaderEpoch"),
    "END_QUORUM_EPOCH": (*OF_ANY, "leaderEpoch"),
    "FETCH": (
        "clusterId",
        "partition",
        "currentLeaderEpoch",
        "fetchOffset",
        "lastFetchedEpoch",
        "replicaId",
        "replicaDirectoryId",
        "highWatermark",
    ),
    "FETCH_SNAPSHOT": (
        *OF_ANY,
        "currentLeaderEpoch",
        "position",
        "endOffset",
        "epoch",
        "replicaId",
    ),
    "UPDATE_RAFT_VOTER": (*OF_ANY, "currentLeaderEpoch"),
}
STRANGER = 77


class Events:
    """The events of one seed: next draws one, follow takes what came of it."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = random.Random(f"quorum {seed}")
        self.seed = seed
        self.dynamic = draw.random() < 0.6
        voters = list(range(1, draw.choice((1, 2, 3, 3, 3, 3, 5)) + 1))
        is_observer = draw.random() < 0.2
        self.local = len(voters) + 1 if is_observer else draw.choice(voters)
        self.auto_join = self.dynamic and is_observer and draw.random() < 0.6
        observers = [len(voters) + 1] if is_observer or self.dynamic else []
        self.voters = voters
        self.linger_ms = draw.choice((0, 0, 0, 25))
        self.peers = Peers(
            self.local, voters, observers, seed=seed, dynamic=self.dynamic, start_ms=START_MS
        )
        self._state: Json | None = None
        self._requests: list[Json] = []
        self._written = 0
        self._restarts = False

    def header(self) -> Json:
        """The first line of the transcript."""
        kind = "dynamic" if self.dynamic else "static"
        who = "observer" if self.local not in self.voters else "voter"
        checkpoint = bootstrap_checkpoint(self.peers.voter_set, 1) if self.dynamic else b""
        header = {
            "kafka": "4.3.0",
            "name": f"{len(self.voters)}-{kind}-{who}-seed-{self.seed}",
            "seed": self.seed,
            "local_id": self.local,
            "local_directory_id": format_uuid(directory_of(self.local)),
            "cluster_id": CLUSTER_ID,
            "topic": TOPIC,
            "topic_id": TOPIC_ID,
            "listener": LISTENER,
            "kraft_version": int(self.dynamic),
            "can_become_voter": self.dynamic or self.local in self.voters,
            "auto_join": self.auto_join,
            "voters": [
                {
                    "id": voter,
                    "directory_id": format_uuid(directory_of(voter)),
                    "in_voter_set_with_directory_id": self.dynamic,
                    "host": f"node{voter}",
                    "port": 9090 + voter,
                }
                for voter in self.voters
            ],
            "bootstrap_servers": [
                {
                    "id": -2 - n if self.dynamic else voter,
                    "host": f"node{voter}",
                    "port": 9090 + voter,
                }
                for n, voter in enumerate(self.voters)
            ],
            "election_timeout_ms": 1000,
            "fetch_timeout_ms": 2000,
            "request_timeout_ms": 2000,
            "retry_backoff_ms": 20,
            "election_backoff_max_ms": 1000,
            "append_linger_ms": self.linger_ms,
            "fetch_max_wait_ms": 500,
            "fetch_max_bytes": 1_048_576,
            "fetch_snapshot_max_bytes": SMALL_SNAPSHOT_PIECE,
            "start_ms": START_MS,
            "quorum_state": self._voted_before() if self.draw.random() < 0.25 else None,
            "log": [],
            "snapshot": [0, 0] if self.dynamic else None,
        }
        if self.dynamic:
            header["snapshot_bytes"] = base64.b64encode(checkpoint).decode()
        return header

    def _voted_before(self) -> Json:
        """The quorum-state file of a node that has voted, for itself or another one."""
        voted = self.draw.choice(self.voters)
        state = {"leaderId": -1, "leaderEpoch": self.draw.randint(1, 6), "votedId": voted}
        if self.dynamic:
            return {**state, "votedDirectoryId": format_uuid(directory_of(voted))}
        voters = [{"voterId": voter} for voter in self.voters]
        return {"clusterId": "", **state, "appliedOffset": 0, "currentVoters": voters}

    def next(self, log: Log) -> Json:
        """The next event.

        Shapes:  log: the node's own, where snapshots may end.
        """
        draw, state = self.draw, self._state
        if state is None:
            return {"kind": "start"}
        if not state["running"]:
            return self._restart(log)
        if draw.random() < 0.12:
            draw.choices(list(_TROUBLES), list(_TROUBLES.values()))[0](self)
        inbox = self.peers.inbox
        if inbox and draw.random() < 0.75:
            return self._arrive(inbox.popleft())
        (kind,) = draw.choices(list(_DRAWN), list(_DRAWN.values()))
        return kind(self, log) or self._advance(log)

    def follow(self, line: Json) -> None:
        """Take what came of the event."""
        self._state = line["state"]
        self.peers.take(line["outbound"])

    def _arrive(self, event: Json) -> Json:
        if event["kind"] == "request":
            self._requests = [*self._requests[-REMEMBERED:], event]
        return event

    # --- what peers meet --------------------------------------------------------------------------

    def _cut(self) -> None:
        ids = list(self.peers.members)
        one = self.draw.choice((self.local, *ids))
        others = self.draw.sample(ids, self.draw.randint(1, len(ids)))
        self.peers.cut([one], others, both=self.draw.random() < 0.7)

    def _heal(self) -> None:
        self.peers.heal()

    def _kill(self) -> None:
        if self.peers.others:
            self.peers.kill(self.draw.choice(self.peers.others).id, lossy=self.draw.random() < 0.5)

    def _start_peers(self) -> None:
        for member in self.peers.members.values():
            if member.machine is None:
                self.peers.start(member.id)

    def _peers_write(self) -> None:
        for leader in self.peers.leaders():
            if self.peers.members[leader].up.is_running:
                self._written += 1
                names = [b"peer%d-%d-%d" % (leader, self._written, n) for n in range(3)]
                self.peers.append(leader, *names[: self.draw.randint(1, 3)])

    def _peer_compacts(self) -> None:
        for member in self.peers.others:
            mark = member.up.high_watermark
            if not member.up.is_running or mark <= member.log.start_offset:
                continue
            batch = member.log.batch_at(mark - 1)
            if batch is not None and batch.next_offset == mark:
                id_ = (mark, batch.leader_epoch)
                if member.up.create_snapshot(id_, (), self.peers.now_ms):
                    member.up.node.log.delete_before_snapshot(id_)

    def _peer_resigns(self) -> None:
        for leader in self.peers.leaders():
            machine = self.peers.members[leader].up
            machine.resign(machine.epoch)
            self.peers.do(leader, machine.poll(self.peers.now_ms))

    def _change_voters(self) -> None:
        for leader in self.peers.leaders()[:1]:
            request, version = self._voter_change(list(self.peers.members[leader].up.voters.voters))
            if request is not None:
                self.peers.request(leader, request, version)

    def _voter_change(self, voters: list[Any]) -> tuple[Any, int]:
        node = self.draw.choice(list(self.peers.members))
        known = {voter.key.id: voter.key for voter in voters}
        if node not in known:
            return add_request(node, self.peers.members[node].directory), 1
        if len(known) < 2:
            return None, 0
        directory = known[node].wire_directory_id
        return RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID, voter_id=node, voter_directory_id=directory
        ), 0

    # --- what the node meets ----------------------------------------------------------------------

    def _advance(self, log: Log) -> Json:
        draw = self.draw
        longest = draw.choices((5, 30, 200, 1_000, 3_000), (40, 30, 20, 9, 2))[0]
        ms = draw.randint(1, longest)
        self.peers.advance(ms)
        return {"kind": "advance", "ms": ms}

    def _epoch(self) -> int:
        assert self._state is not None
        epoch: int = self._state["epoch"]
        return epoch + self.draw.choice((-1, 1)) if self.draw.random() < 0.08 else epoch

    def _append(self, log: Log) -> Json | None:
        assert self._state is not None
        if self._state["role"] != "Leader" and self.draw.random() < 0.9:
            return None
        self._written += 1
        records = [f"ours-{self._written}-{n}" for n in range(self.draw.randint(1, 3))]
        return {"kind": "append", "epoch": self._epoch(), "records": records}

    def _resign(self, log: Log) -> Json | None:
        return {"kind": "resign", "epoch": max(0, self._epoch())}

    def _shutdown(self, log: Log) -> Json:
        return {"kind": "shutdown_gracefully", "timeout_ms": 5_000}

    def _restart(self, log: Log) -> Json:
        self.peers.inbox.clear()
        return {"kind": "restart", "lossy": self.draw.random() < 0.5}

    def _create_snapshot(self, log: Log) -> Json | None:
        assert self._state is not None
        mark = self._state["high_watermark"]
        odd = self.draw.random() < 0.15
        batches = [b for b in log.batches if odd or b.next_offset <= mark]
        if not batches:
            return None
        batch = self.draw.choice(batches[-6:])
        self._written += 1
        return {
            "kind": "create_snapshot",
            "offset": batch.next_offset,
            "epoch": batch.leader_epoch + (odd and self.draw.random() < 0.3),
            "delete_before": self.draw.random() < 0.5,
            "records": [f"snap-{self._written}-{n}" for n in range(3)],
        }

    def _upgrade(self, log: Log) -> Json | None:
        if self.dynamic and self.draw.random() < 0.8:
            return None
        return {
            "kind": "upgrade_kraft_version",
            "epoch": self._epoch(),
            "version": self.draw.choice((1, 1, 1, 0)),
            "validate_only": self.draw.random() < 0.3,
        }

    # --- requests of nobody -----------------------------------------------------------------------

    def _admin(self, log: Log) -> Json | None:
        """A request of an administrator, or of a broker that looks for the leader."""
        assert self._state is not None
        draw = self.draw
        if draw.random() < 0.4:
            body: Json = {"topics": [{"topicName": TOPIC, "partitions": [{"partitionIndex": 0}]}]}
            return self._request("DESCRIBE_QUORUM", draw.choice((0, 1, 2)), body)
        voter = draw.choice([*self._state["voters"], f"{draw.choice(list(self.peers.members))}"])
        id_, _, directory = voter.partition(":")
        known = directory or format_uuid(directory_of(int(id_)))
        if draw.random() < 0.5:
            message, version = add_request(int(id_), directory_of(int(id_))), draw.choice((0, 1))
            body = forms.write_message(message, version)
            return self._request("ADD_RAFT_VOTER", version, body)
        body = {"clusterId": CLUSTER_ID, "voterId": int(id_), "voterDirectoryId": known}
        return self._request("REMOVE_RAFT_VOTER", 0, body)

    def _request(self, api: str, version: int, body: Json) -> Json:
        return {
            "kind": "request",
            "from": self.draw.choice(list(self.peers.members)),
            "correlation": self.peers.next_correlation(),
            "api": api,
            "version": version,
            "body": body,
        }

    def _again(self, log: Log) -> Json | None:
        """A request of before, as it was or with one thing changed."""
        if not self._requests:
            return None
        event = copy.deepcopy(self.draw.choice(self._requests))
        event["correlation"] = self.peers.next_correlation()
        if self.draw.random() < 0.8:
            places = list(_places(event["body"], CHANGED.get(event["api"], OF_ANY)))
            if places:
                self._change(event["api"], *self.draw.choice(places))
        return event

    def _change(self, api: str, place: Json, name: str) -> None:
        draw, value = self.draw, place[name]
        assert self._state is not None
        epoch = self._state["epoch"]
        match name:
            case "clusterId":
                place[name] = draw.choice(("another", None))
            case "leaderEpoch":
                place[name] = max(0, min(value, epoch) - draw.choice((1, 2)))
            case "replicaEpoch":
                place[name] = max(0, draw.choice((epoch, epoch - 1, epoch + 1, value + 1)))
            case "currentLeaderEpoch" | "epoch" | "lastFetchedEpoch":
                place[name] = max(0, value + draw.choice((-1, -1, 1)))
            case "fetchOffset" | "lastOffset":
                place[name] = max(0, value - draw.choice((1, 2, 5)))
            case "position" | "endOffset" | "highWatermark":
                place[name] = max(-1, value + draw.choice((-2, -1, 1, 3)))
            case "voterId":
                place[name] = draw.choice((*self.peers.members, STRANGER))
            case "replicaId":
                place[name] = STRANGER
            case "voterDirectoryId" | "replicaDirectoryId":
                place[name] = format_uuid(draw.choice((UUID(int=0), UUID(int=4242))))
            case "preVote":
                place[name] = not value
            case "partition" | "partitionIndex":
                place[name] = 1
            case "topicName":
                place[name] = "another"


def _places(form: Any, names: Sequence[str]) -> Iterator[tuple[Json, str]]:
    """All fields of a body with one of these names, and the object they are in."""
    if isinstance(form, dict):
        for name, value in form.items():
            if name in names and not isinstance(value, dict | list):
                yield form, name
            yield from _places(value, names)
    elif isinstance(form, list):
        for each in form:
            yield from _places(each, names)


_TROUBLES: dict[Callable[[Events], None], int] = {
    Events._cut: 4,
    Events._heal: 10,
    Events._kill: 3,
    Events._start_peers: 10,
    Events._peers_write: 30,
    Events._peer_compacts: 4,
    Events._peer_resigns: 1,
    Events._change_voters: 4,
}
_DRAWN: dict[Callable[[Events, Log], Json | None], float] = {
    Events._advance: 60,
    Events._append: 12,
    Events._again: 8,
    Events._admin: 4,
    Events._create_snapshot: 2,
    Events._resign: 0.6,
    Events._shutdown: 0.3,
    Events._restart: 1,
    Events._upgrade: 0.7,
}
