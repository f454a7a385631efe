"""Answers on demand for the clients of a drawn scenario: errors, lost and late responses.

Each is what a real node may say at the time that it is given: an error that means that nothing was
done comes before the request takes effect, one that leaves the outcome open after it. So clients
may repeat what they do and lose nothing.

Source:  the errors that Kafka's clients retry; librdkafka's mock cluster, franz-go's kfake.
"""

from __future__ import annotations

from collections.abc import Mapping

from minicluster.durations import format_duration
from minicluster.scenario.nemesis.draws import TOPICS, Draws, Step, World

_OF_COORDINATORS = ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR")
_OF_LEADERS = ("NOT_LEADER_OR_FOLLOWER", "KAFKA_STORAGE_ERROR")
_OF_LOAD: Mapping[str, tuple[str, ...]] = {
    "Produce": (*_OF_LEADERS, "NOT_ENOUGH_REPLICAS"),
}
_OF_CLIENTS: Mapping[str, tuple[str, ...]] = {
    **_OF_LOAD,
    "Fetch": _OF_LEADERS,
    "Metadata": ("LEADER_NOT_AVAILABLE",),
    "FindCoordinator": ("COORDINATOR_NOT_AVAILABLE",),
    "InitProducerId": (*_OF_COORDINATORS, "CONCURRENT_TRANSACTIONS"),
    "AddPartitionsToTxn": (*_OF_COORDINATORS, "CONCURRENT_TRANSACTIONS"),
    "EndTxn": (*_OF_COORDINATORS, "CONCURRENT_TRANSACTIONS"),
    "TxnOffsetCommit": _OF_COORDINATORS,
    "OffsetCommit": _OF_COORDINATORS,
    "OffsetFetch": _OF_COORDINATORS,
    "JoinGroup": _OF_COORDINATORS,
    "SyncGroup": (*_OF_COORDINATORS, "REBALANCE_IN_PROGRESS"),
    "Heartbeat": (*_OF_COORDINATORS, "REBALANCE_IN_PROGRESS"),
    "ConsumerGroupHeartbeat": _OF_COORDINATORS,
}
_UNSURE = ("REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")  # of a Produce that is written
_WAYS = ("respond", "respond", "respond", "drop_responses", "close_connections", "delay")


def answer(draws: Draws, name: str, world: World) -> Step:
    """One answer, once or a few times."""
    errors = _OF_CLIENTS if world.clients else _OF_LOAD
    api = [*errors][draws.below(f"{name}/api", len(errors))]
    way = _WAYS[draws.below(f"{name}/way", len(_WAYS))]
    step: Step = {"do": way, "api": api, "times": 1 + draws.below(f"{name}/times", 4)}
    if way == "respond":
        is_after = api == "Produce" and draws.flip(f"{name}/after")
        of = _UNSURE if is_after else errors[api]
        step |= {"error": of[draws.below(f"{name}/error", len(of))]}
        if is_after:
            step["when"] = "after"
    elif way == "delay":
        step["mean"] = format_duration(draws.between(f"{name}/mean", 100, 5_000))
    elif draws.flip(f"{name}/before", 0.3):
        step["when"] = "before"
    if way == "close_connections" and draws.flip(f"{name}/reset"):
        step["connections"] = "reset"
    if api in ("Produce", "Fetch") and draws.flip(f"{name}/of one", 0.3):
        step["partitions"] = f"{TOPICS[draws.below(f'{name}/topic', len(TOPICS))]}-0"
    return step
