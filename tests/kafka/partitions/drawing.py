"""Events of a partition, drawn from a seed and from what the ones before have left.

Around the partition stand the controller, the other replicas and the metadata log. Most of what
they send fits the state; about one in six is wrong in one thing: an epoch, an offset, a broker.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from uuid import UUID

from minicluster.protocol import format_uuid

Json = dict[str, Any]
LOCAL = 1
BROKERS = range(1, 8)
STRANGER = 99
ODD = 0.16
LARGE_READ = 100_000
LAG_MS = 10_000
# As many as Partition.handleAlterPartitionError tells apart, and some that it retries.
RESPONSES = (
    *["NONE"] * 14,
    "OPERATION_NOT_ATTEMPTED",
    "INELIGIBLE_REPLICA",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "UNKNOWN_TOPIC_ID",
    "FENCED_LEADER_EPOCH",
    "INVALID_UPDATE_VERSION",
    "INVALID_REQUEST",
    "NEW_LEADER_ELECTED",
    "NOT_CONTROLLER",
    "REQUEST_TIMED_OUT",
    "UNKNOWN_SERVER_ERROR",
    "NETWORK_EXCEPTION",
)


class Events:
    """The events of one seed: next draws one, follow takes what came of it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.draw = random.Random(seed)
        self._brokers: dict[int, Json] = {}
        self._epoch = 100
        self._local_epoch = 100
        self._min_isr = self.draw.choice((1, 2, 2, 3))
        replicas = [LOCAL, *self.draw.sample(BROKERS[1:], self.draw.choice((1, 2, 2, 3, 4)))]
        self.draw.shuffle(replicas)
        # What the controller has decided, and all that it decided before.
        self._decided: Json = {
            "leader": LOCAL if self.draw.random() < 0.7 else self._other(replicas),
            "leader_epoch": self.draw.choice((0, 0, 3)),
            "partition_epoch": self.draw.choice((0, 0, 7)),
            "isr": list(replicas),
            "replicas": replicas,
            "adding": [],
            "removing": [],
            "recovery_state": "RECOVERED",
        }
        self._history: list[Json] = []
        self._positions: dict[int, int] = {}
        self._proposal: Json | None = None
        self._line: Json | None = None

    def header(self, kafka: str) -> Json:
        """The first line of the transcript."""
        return {
            "transcript": "partition",
            "kafka": kafka,
            "seed": self.seed,
            "broker_id": LOCAL,
            "broker_epoch": self._local_epoch,
            "replica_lag_time_max_ms": LAG_MS,
            "min_insync_replicas": self._min_isr,
            "topic_id": format_uuid(UUID(int=self.draw.getrandbits(128))),
            "start_ms": 1_000_000,
        }

    def next(self) -> Json:
        """The next event."""
        if self._line is None:
            return self._register(BROKERS)
        state, draw = self._line["state"], self.draw
        if state["role"] == "none":
            return self._become(state) if draw.random() < 0.7 else self._metadata_changed(state)
        kinds = LEADER if state["role"] == "leader" else FOLLOWER
        if state["in_flight"] is not None and draw.random() < 0.2:
            return self._alter_partition_response(state)
        (kind,) = draw.choices(list(kinds), list(kinds.values()))
        return _DRAWN[kind](self, state)

    def follow(self, line: Json) -> None:
        """Take what came of the event."""
        self._line = line
        event, result, state = line["event"], line["result"], line["state"]
        for proposal in line["alter_partition"]:
            if proposal["accepted"]:
                self._proposal = proposal
        if event["kind"] == "fetch":
            self._follow_fetch(event["replica"], result, state)

    def _follow_fetch(self, replica: int, result: Json, state: Json) -> None:
        if result.get("error") == "OFFSET_OUT_OF_RANGE":
            self._positions[replica] = self.draw.choice(
                (state["log_start_offset"], state["log_end_offset"])
            )
        elif result.get("diverging_epoch"):
            self._positions[replica] = result["diverging_epoch"]["end_offset"]
        elif result.get("batches"):
            self._positions[replica] = result["batches"][-1][1] + 1

    def _odd(self) -> bool:
        return self.draw.random() < ODD

    def _other(self, replicas: list[int]) -> int:
        return self.draw.choice([replica for replica in replicas if replica != LOCAL])

    # --- the metadata log -------------------------------------------------------------------------

    def _register(self, ids: Any) -> Json:
        for broker in ids:
            self._brokers[broker] = {
                "id": broker,
                "epoch": self._local_epoch if broker == LOCAL else self._next_epoch(),
                "fenced": False,
                "in_controlled_shutdown": False,
            }
        return self._publish(ids)

    def _next_epoch(self) -> int:
        self._epoch += 1
        return self._epoch

    def _publish(self, ids: Any) -> Json:
        return {"kind": "metadata_changed", "brokers": [dict(self._brokers[id_]) for id_ in ids]}

    def _metadata_changed(self, state: Json) -> Json:
        draw = self.draw
        members = [*self._decided["replicas"], *BROKERS]
        ids = sorted(set(draw.sample(members, draw.choice((1, 1, 2)))))
        for broker in ids:
            change = draw.random()
            known = self._brokers[broker]
            if change < 0.4 or known["epoch"] is None:
                self._register([broker])
            elif change < 0.6:
                known["fenced"] = not known["fenced"]
            elif change < 0.8:
                known["in_controlled_shutdown"] = not known["in_controlled_shutdown"]
            elif change < 0.9:
                known["epoch"], known["fenced"] = self._next_epoch(), True
            elif broker != LOCAL:
                known["epoch"] = None
        return self._publish(ids)

    def _become(self, state: Json) -> Json:
        draw = self.draw
        is_new = not self._history
        kind = draw.random()
        if is_new:
            decided = self._decided
        elif kind < 0.15:
            decided = draw.choice(self._history)
        elif kind < 0.35 and state["role"] != "none":
            decided = self._decided
        else:
            decided = self._decide(state)
        if decided is self._decided:
            self._history.append(decided)
        name = "become_leader" if decided["leader"] == LOCAL else "become_follower"
        return {"kind": name, **decided, "is_new": is_new}

    def _decide(self, state: Json) -> Json:
        """The controller changes the partition."""
        draw = self.draw
        decided = dict(self._decided)
        decided["partition_epoch"] += draw.choice((1, 1, 2))
        kind = draw.random()
        replicas = decided["replicas"]
        proposal = self._proposal
        if kind < 0.2 and proposal and proposal["leader_epoch"] == decided["leader_epoch"]:
            # The proposal is written, and its response comes later.
            proposed = {broker for broker, _ in proposal["isr"]}
            decided["isr"] = [r for r in replicas if r in proposed]
            decided["partition_epoch"] = max(
                decided["partition_epoch"], proposal["partition_epoch"] + 1
            )
        elif kind < 0.35:
            decided["isr"] = [
                r for r in replicas if r == decided["leader"] or draw.random() < 0.6
            ] or replicas[:1]
        elif kind < 0.5:
            self._reassign(decided)
        else:
            decided["leader_epoch"] += draw.choice((1, 1, 1, 2))
            self._elect(decided)
        self._decided = decided
        return decided

    def _elect(self, decided: Json) -> None:
        draw = self.draw
        kind = draw.random()
        decided["recovery_state"] = "RECOVERED"
        if kind < 0.6:
            decided["leader"] = LOCAL
        elif kind < 0.95:
            decided["leader"] = self._other(decided["replicas"])
        else:
            decided["leader"] = -1
        leader = decided["leader"]
        if leader >= 0 and leader not in decided["isr"]:
            if draw.random() < 0.5:
                decided["isr"] = [leader]
                decided["recovery_state"] = draw.choice(("RECOVERING", "RECOVERED"))
            else:
                decided["isr"] = [leader, *decided["isr"]]
        elif draw.random() < 0.3:
            decided["isr"] = [r for r in decided["isr"] if r == leader or draw.random() < 0.5] or [
                decided["replicas"][0]
            ]

    def _reassign(self, decided: Json) -> None:
        draw = self.draw
        if decided["adding"] or decided["removing"]:
            kept = [r for r in decided["replicas"] if r not in decided["removing"]]
            if LOCAL not in kept or len(kept) < 2 or draw.random() < 0.3:
                kept = [r for r in decided["replicas"] if r not in decided["adding"]]
            decided |= {"replicas": kept, "adding": [], "removing": []}
            decided["isr"] = [r for r in decided["isr"] if r in kept] or kept[:1]
            if decided["leader"] not in (*kept, -1):
                decided["leader"], decided["leader_epoch"] = kept[0], decided["leader_epoch"] + 1
                decided["isr"] = sorted({kept[0], *decided["isr"]})
            return
        outside = [broker for broker in BROKERS if broker not in decided["replicas"]]
        adding = draw.sample(outside, min(len(outside), draw.choice((0, 1, 1, 2))))
        removing = [r for r in decided["replicas"] if r != LOCAL and draw.random() < 0.3]
        decided |= {
            "replicas": [*decided["replicas"], *adding],
            "adding": adding,
            "removing": removing,
        }

    def _restart(self, state: Json) -> Json:
        self._local_epoch = self._next_epoch()
        self._proposal = None
        low, high = state["log_start_offset"], state["high_watermark"]
        return {
            "kind": "restart",
            "broker_epoch": self._local_epoch,
            "high_watermark_checkpoint": self.draw.choice((high, high, low, max(low, high - 3), 0)),
        }

    def _config_changed(self, state: Json) -> Json:
        return {"kind": "config_changed", "min_insync_replicas": self.draw.randint(1, 3)}

    def _alter_partition_response(self, state: Json) -> Json:
        draw, proposal = self.draw, self._proposal
        assert proposal is not None
        event: Json = {"kind": "alter_partition_response", "id": proposal["id"]}
        if draw.random() < 0.04:
            event["id"] -= 1
        event["error"] = error = draw.choice(RESPONSES)
        if error == "NONE":
            written = {
                "leader": LOCAL,
                "leader_epoch": proposal["leader_epoch"],
                "partition_epoch": proposal["partition_epoch"] + 1,
                "recovery_state": "RECOVERED",
                "isr": sorted(broker for broker, _ in proposal["isr"]),
            }
            known = self._decided
            if written["leader_epoch"] == known["leader_epoch"] and not self._odd():
                written["partition_epoch"] = max(
                    written["partition_epoch"], known["partition_epoch"]
                )
                self._decided = {**known, **written}
            elif draw.random() < 0.3:
                written["leader_epoch"] += draw.choice((-1, 1))
            elif draw.random() < 0.5:
                written["partition_epoch"] += draw.choice((-3, -2, -1, 1))
            event |= written
        return event

    # --- time and clients -------------------------------------------------------------------------

    def _advance(self, state: Json) -> Json:
        draw = self.draw
        longest = draw.choice((200, 1_000, 1_000, LAG_MS, 2 * LAG_MS))
        return {"kind": "advance", "ms": draw.randint(1, longest)}

    def _append(self, state: Json) -> Json:
        draw = self.draw
        return {
            "kind": "append",
            "acks": draw.choice((-1, -1, 1, 0)),
            "count": draw.randint(1, 4),
            "value_bytes": draw.randint(1, 30),
        }

    def _delete_records(self, state: Json) -> Json:
        return {"kind": "delete_records", "offset": self._offset(state, "high_watermark")}

    def _check_enough_replicas(self, state: Json) -> Json:
        offset = max(0, self._offset(state, "log_end_offset"))
        return {"kind": "check_enough_replicas", "required_offset": offset}

    def _offset(self, state: Json, end: str) -> int:
        """One of the log, or next to it."""
        draw = self.draw
        if draw.random() < 0.3:
            return int(draw.choice((-1, state["log_start_offset"], state[end])))
        return max(-1, draw.randint(state["log_start_offset"] - 2, state[end] + 2))

    def _leader_epoch(self, state: Json) -> int | None:
        kind = self.draw.random()
        if kind < 0.1:
            return None
        epoch: int = state["leader_epoch"]
        return epoch if kind < 0.9 else epoch + self.draw.choice((-1, 1))

    def _fetched_epoch(self, state: Json, offset: int) -> int | None:
        """The epoch of the record before an offset, more or less."""
        draw = self.draw
        if draw.random() < 0.3 or offset <= 0:
            return None
        epochs = [epoch for epoch, start in state["epochs"] if start < offset]
        if not epochs or self._odd():
            return draw.randint(0, max(0, state["leader_epoch"] + 1))
        return int(epochs[-1])

    def _max_bytes(self) -> int:
        return self.draw.randint(50, 400) if self._odd() else LARGE_READ

    def _consumer_fetch(self, state: Json) -> Json:
        offset = max(0, self._offset(state, "log_end_offset"))
        return {
            "kind": "consumer_fetch",
            "fetch_offset": offset,
            "isolation": self.draw.choice(("read_uncommitted", "read_committed")),
            "any_replica": self.draw.random() < 0.5,
            "current_leader_epoch": self._leader_epoch(state),
            "last_fetched_epoch": self._fetched_epoch(state, offset),
            "max_bytes": self._max_bytes(),
        }

    def _list_offsets(self, state: Json) -> Json:
        return {
            "kind": "list_offsets",
            "current_leader_epoch": self._leader_epoch(state),
            "timestamp": self.draw.choice((-1, -2)),
            "isolation": self.draw.choice((None, "read_uncommitted", "read_committed")),
            "only_leader": self.draw.random() < 0.8,
        }

    def _last_offset_for_leader_epoch(self, state: Json) -> Json:
        return {
            "kind": "last_offset_for_leader_epoch",
            "current_leader_epoch": self._leader_epoch(state),
            "leader_epoch": self.draw.randint(-1, state["leader_epoch"] + 1),
            "only_leader": self.draw.random() < 0.8,
        }

    def _maybe_shrink_isr(self, state: Json) -> Json:
        return {"kind": "maybe_shrink_isr"}

    # --- other replicas ---------------------------------------------------------------------------

    def _fetch(self, state: Json) -> Json:
        draw = self.draw
        others = [replica for replica in state["replicas"] if replica != LOCAL]
        replica = draw.choice(others) if others else STRANGER
        if draw.random() < 0.03:
            replica = draw.choice((STRANGER, *BROKERS[1:]))
        start, end = state["log_start_offset"], state["log_end_offset"]
        offset = self._positions.get(replica, draw.choice((start, end)))
        if draw.random() < 0.08:
            offset = max(0, draw.randint(start - 2, end + 2))
        broker = self._brokers.get(replica)
        epoch = -1 if broker is None or broker["epoch"] is None else broker["epoch"]
        if draw.random() < 0.1:
            epoch = draw.choice((-1, epoch - 1, epoch + 1))
        return {
            "kind": "fetch",
            "replica": replica,
            "broker_epoch": epoch,
            "fetch_offset": offset,
            "log_start_offset": min(offset, draw.choice((start, start, start, 0))),
            "current_leader_epoch": self._leader_epoch(state),
            "last_fetched_epoch": self._fetched_epoch(state, offset),
            "max_bytes": self._max_bytes(),
        }

    def _append_as_follower(self, state: Json) -> Json:
        draw = self.draw
        start, end, leader_epoch = (
            state["log_start_offset"],
            state["log_end_offset"],
            state["leader_epoch"],
        )
        base = end
        if draw.random() < 0.08:
            base = max(0, end + draw.randint(-4, 4))
        epoch = max([e for e, _ in state["epochs"]], default=0)
        batches: list[list[int]] = []
        for _ in range(draw.choice((0, 1, 1, 1, 2, 3))):
            last = base + draw.randint(0, 3)
            epoch = draw.choice((epoch, epoch, max(epoch, leader_epoch)))
            beyond = draw.random() < 0.03
            batches.append([base, last, leader_epoch + 1 if beyond else epoch])
            base = last + 1 + (draw.randint(1, 4) if draw.random() < 0.05 else 0)
        if len(batches) > 1 and draw.random() < 0.06:
            batches.append(list(batches[0]))
        after = max(end, batches[-1][1] + 1 if batches else end)
        high = max(0, draw.randint(state["high_watermark"] - 2, after + 3))
        return {
            "kind": "append_as_follower",
            "partition_leader_epoch": leader_epoch - (draw.random() < 0.06),
            "leader_high_watermark": high,
            "leader_log_start_offset": draw.randint(start, max(start, min(high, end)))
            if self._odd()
            else start,
            "batches": batches,
        }

    def _truncate(self, state: Json) -> Json:
        offset = self.draw.randint(state["log_start_offset"], state["log_end_offset"])
        return {"kind": "truncate", "offset": offset}

    def _truncate_fully(self, state: Json) -> Json:
        end = state["log_end_offset"]
        return {"kind": "truncate_fully", "offset": max(0, end + self.draw.randint(-5, 12))}


_DRAWN: dict[str, Callable[[Events, Json], Json]] = {
    "metadata_changed": Events._metadata_changed,
    "become": Events._become,
    "restart": Events._restart,
    "config_changed": Events._config_changed,
    "advance": Events._advance,
    "append": Events._append,
    "delete_records": Events._delete_records,
    "check_enough_replicas": Events._check_enough_replicas,
    "consumer_fetch": Events._consumer_fetch,
    "list_offsets": Events._list_offsets,
    "last_offset_for_leader_epoch": Events._last_offset_for_leader_epoch,
    "maybe_shrink_isr": Events._maybe_shrink_isr,
    "fetch": Events._fetch,
    "append_as_follower": Events._append_as_follower,
    "truncate": Events._truncate,
    "truncate_fully": Events._truncate_fully,
}
LEADER = {
    "fetch": 46,
    "append": 11,
    "advance": 12,
    "maybe_shrink_isr": 6,
    "consumer_fetch": 5,
    "metadata_changed": 5,
    "become": 5,
    "list_offsets": 3,
    "last_offset_for_leader_epoch": 3,
    "delete_records": 3,
    "check_enough_replicas": 2,
    "restart": 0.6,
    "config_changed": 0.3,
}
FOLLOWER = {
    "append_as_follower": 40,
    "advance": 15,
    "become": 14,
    "metadata_changed": 4,
    "append": 3,
    "maybe_shrink_isr": 3,
    "fetch": 4,
    "consumer_fetch": 6,
    "delete_records": 2,
    "list_offsets": 4,
    "last_offset_for_leader_epoch": 4,
    "check_enough_replicas": 1,
    "truncate": 3,
    "truncate_fully": 2,
    "restart": 1,
    "config_changed": 0.3,
}
