"""Operations on a controller, drawn from the state that the ones before have left.

Most are such as nodes and administrators send; about one in six is wrong in one thing: an epoch, a
broker, a topic, a level.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.cluster import BrokerRegistration
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.metadata.metadata_version import (
    ELR_VERSION,
    FEATURE_NAME,
    GROUP_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
)
from minicluster.protocol import format_uuid

Json = dict[str, Any]
BROKERS = range(5)
TOPICS_MAX = 8
ODD = 0.16
NOWHERE = "nowhere"
CONFIGS = {
    "min.insync.replicas": ("1", "2", "3"),
    "unclean.leader.election.enable": ("true", "false"),
}
FEATURES = (
    FEATURE_NAME,
    GROUP_VERSION,
    TRANSACTION_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    "kraft.version",
    "no.feature",
)
WEIGHTS = {
    "broker_heartbeat": 34,
    "alter_partition": 20,
    "register_broker": 9,
    "create_topics": 5,
    "maybe_fence_stale_brokers": 5,
    "alter_partition_reassignments": 5,
    "elect_leaders": 4,
    "incremental_alter_configs": 4,
    "assign_replicas_to_dirs": 3,
    "maybe_balance_partition_leaders": 2,
    "maybe_elect_unclean_leaders": 2,
    "create_partitions": 2,
    "delete_topics": 2,
    "update_features": 2,
    "unregister_broker": 1,
    "list_partition_reassignments": 1,
}
Partition = tuple[TopicImage, int, PartitionRegistration]


class Workload:
    """The operations of one seed.

    Shapes:  updates_features: without it the levels of the header stay. deletes_topics: with ELRs
             4.3 resigns soon after a topic is gone (Z52, Z53). is_earlier: 3.9, where ELRs
             are no feature, and a reassignment cannot forbid another replication factor.
    """

    def __init__(
        self, seed: int, *, updates_features: bool, deletes_topics: bool, is_earlier: bool
    ) -> None:
        self.draw = random.Random(seed)
        self._left_out: set[str] = set()
        if not updates_features:
            self._left_out.add("update_features")
        if not deletes_topics:
            self._left_out.add("delete_topics")
        self.features = FEATURES if is_earlier else (*FEATURES, ELR_VERSION)
        self._is_earlier = is_earlier
        self._created = 0

    def next(self, state: ClusterState, offset: int) -> tuple[str, Json]:
        """The next operation and its request."""
        draw = self.draw
        brokers = state.image.cluster.brokers
        if not brokers or (len(brokers) < len(BROKERS) and draw.random() < 0.2):
            return "register_broker", self._register_broker(state, offset)
        while True:
            (op,) = draw.choices(list(WEIGHTS), list(WEIGHTS.values()))
            if op in self._left_out:
                continue
            request = _DRAWN[op](self, state, offset)
            if request is not None:
                return op, request

    def pause_ms(self) -> int:
        """The time before the next operation."""
        if self.draw.random() < 0.02:
            return self.draw.randint(5_000, 12_000)
        return self.draw.choice((0, 0, 10, 100, 500, 1_000))

    def _odd(self) -> bool:
        return self.draw.random() < ODD

    # --- what there is ----------------------------------------------------------------------------

    def _broker(self, state: ClusterState) -> BrokerRegistration:
        return self.draw.choice(list(state.image.cluster.brokers.values()))

    def _epoch(self, epoch: int) -> int:
        return epoch + self.draw.choice((-1, 1, 7)) if self._odd() and self._odd() else epoch

    def _topic(self, state: ClusterState) -> TopicImage | None:
        topics = list(state.image.topics)
        return self.draw.choice(topics) if topics else None

    def _name(self, state: ClusterState) -> str:
        topic = self._topic(state)
        return NOWHERE if topic is None or (self._odd() and self._odd()) else topic.name

    def _partition(
        self, state: ClusterState, wanted: Callable[[PartitionRegistration], bool]
    ) -> Partition | None:
        all_partitions = list(state.image.topics.partitions())
        fitting = [each for each in all_partitions if wanted(each[2])]
        if not all_partitions:
            return None
        return self.draw.choice(fitting or all_partitions)

    def _directories(self, broker_id: int) -> list[str]:
        return [format_uuid(UUID(int=(broker_id + 1 << 96) + (n << 64) + 4_096)) for n in (1, 2)]

    def _replicas(self, count: int) -> list[int]:
        return self.draw.sample(list(BROKERS), min(count, len(BROKERS)))

    # --- brokers ----------------------------------------------------------------------------------

    def _register_broker(self, state: ClusterState, offset: int) -> Json:
        draw = self.draw
        broker_id = draw.choice(list(BROKERS))
        known = state.image.cluster.broker(broker_id)
        same = known is not None and draw.random() < 0.3
        incarnation = known.incarnation_id if known and same else UUID(int=draw.getrandbits(120))
        has_directories = state.gates.metadata_version.directory_assignment_supported
        directories = self._directories(broker_id) if has_directories or self._odd() else []
        if directories and self._odd():
            directories = draw.choice(([], directories[:1], directories[:1] * 2))
        return {
            "broker_id": broker_id,
            "incarnation_id": format_uuid(incarnation),
            "previous_broker_epoch": draw.choice((-1, known.epoch if known else offset)),
            "rack": draw.choice((None, "rack0", "rack1")),
            "log_dirs": directories,
            "cluster_id": "another" if self._odd() and self._odd() else "transcript",
            "feature": draw.choice(("narrow", "none")) if self._odd() and self._odd() else "full",
            "version": draw.randint(0, 4),
        }

    def _broker_heartbeat(self, state: ClusterState, offset: int) -> Json:
        draw, broker = self.draw, self._broker(state)
        lost = [d for d in self._directories(broker.id) if draw.random() < 0.03]
        request: Json = {
            "broker_id": broker.id if not (self._odd() and self._odd()) else 9,
            "broker_epoch": self._epoch(broker.epoch),
            "current_metadata_offset": draw.choice((offset - 1, offset - 1, broker.epoch, 0)),
            "want_fence": draw.random() < 0.04,
            "want_shut_down": draw.random() < (0.5 if broker.in_controlled_shutdown else 0.05),
            "offline_log_dirs": lost,
        }
        if state.gates.metadata_version.cordoned_log_dirs_supported and draw.random() < 0.05:
            request["cordoned_log_dirs"] = [
                d for d in self._directories(broker.id) if draw.random() < 0.5
            ]
        return request

    def _assign_replicas_to_dirs(self, state: ClusterState, offset: int) -> Json:
        broker = self._broker(state)
        directories = []
        for directory in self._directories(broker.id)[: self.draw.randint(1, 2)]:
            topic = self._topic(state)
            topics = []
            if topic is not None:
                indexes = [i for i in range(len(topic.partitions)) if self.draw.random() < 0.6]
                topics = [
                    {
                        "topic_id": format_uuid(UUID(int=77) if self._odd() else topic.id),
                        "partitions": [*indexes, *([99] if self._odd() else ())],
                    }
                ]
            directories.append({"id": directory, "topics": topics})
        return {
            "broker_id": broker.id,
            "broker_epoch": self._epoch(broker.epoch),
            "directories": directories,
        }

    def _unregister_broker(self, state: ClusterState, offset: int) -> Json:
        return {"broker_id": 9 if self._odd() else self._broker(state).id}

    def _nothing(self, state: ClusterState, offset: int) -> Json:
        return {}

    # --- partitions -------------------------------------------------------------------------------

    def _alter_partition(self, state: ClusterState, offset: int) -> Json | None:
        draw = self.draw
        chosen = self._partition(state, lambda p: p.has_leader)
        if chosen is None:
            return None
        leader = chosen[2].leader
        led = [each for each in state.image.topics.partitions() if each[2].leader == leader]
        some = draw.sample(led, min(len(led), draw.choice((1, 1, 2, 3)))) if led else [chosen]
        sender = self._broker(state) if self._odd() else state.image.cluster.broker(leader)
        sender = sender or self._broker(state)
        return {
            "broker_id": sender.id,
            "broker_epoch": self._epoch(sender.epoch),
            "version": draw.randint(state.rules.alter_partition_version_lowest, 3),
            "partitions": [self._new_isr(state, *each) for each in some],
        }

    def _new_isr(
        self, state: ClusterState, topic: TopicImage, index: int, partition: PartitionRegistration
    ) -> Json:
        draw = self.draw
        kind = draw.random()
        if kind < 0.6:  # most ISRs grow, or they would soon be small
            isr = [r for r in partition.replicas if r in partition.isr or draw.random() < 0.8]
        elif kind < 0.9:
            isr = [r for r in partition.replicas if r == partition.leader or draw.random() < 0.6]
        else:
            isr = self._replicas(draw.randint(0, 4))
        brokers = state.image.cluster.brokers
        epochs = {b: brokers[b].epoch if b in brokers else -1 for b in isr}
        return {
            "topic_id": format_uuid(UUID(int=77) if self._odd() and self._odd() else topic.id),
            "topic_name": topic.name,
            "partition_index": 99 if self._odd() and self._odd() else index,
            "leader_epoch": self._epoch(partition.leader_epoch),
            "partition_epoch": self._epoch(partition.partition_epoch),
            "new_isr_with_epochs": [
                {
                    "broker_id": b,
                    "broker_epoch": draw.choice((-1, epochs[b], self._epoch(epochs[b]))),
                }
                for b in isr
            ],
            "leader_recovery_state": self._recovery_state(),
        }

    def _recovery_state(self) -> int:
        unknown = self.draw.random() < 0.001  # the controller resigns over one that there is not
        return 2 if unknown else int(self.draw.random() < 0.1)

    def _elect_leaders(self, state: ClusterState, offset: int) -> Json:
        wanted = None
        if self.draw.random() < 0.8:
            wanted = []
            for topic in sorted({self._name(state) for _ in range(self.draw.randint(1, 2))}):
                wanted.append({"topic": topic, "partitions": self.draw.sample(range(6), 2)})
        return {"election_type": self.draw.choice((0, 0, 1)), "topic_partitions": wanted}

    def _alter_partition_reassignments(self, state: ClusterState, offset: int) -> Json | None:
        draw = self.draw
        chosen = self._partition(state, lambda p: p.is_reassigning or draw.random() < 0.5)
        if chosen is None:
            return None
        topic, index, partition = chosen
        target: list[int] | None = self._replicas(len(partition.replicas) or 1)
        if partition.is_reassigning and draw.random() < 0.4:
            target = None
        elif self._odd():
            target = draw.choice((None, [], [1, 1], [9], self._replicas(draw.randint(1, 4))))
        elif draw.random() < 0.3:
            target = draw.sample(partition.replicas, len(partition.replicas))
        request: Json = {
            "topics": [
                {
                    "name": NOWHERE if self._odd() and self._odd() else topic.name,
                    "partitions": [{"partition_index": index, "replicas": target}],
                }
            ]
        }
        if not self._is_earlier and draw.random() < 0.2:
            request["allow_replication_factor_change"] = False
        return request

    def _list_partition_reassignments(self, state: ClusterState, offset: int) -> Json:
        if self.draw.random() < 0.5:
            return {"topics": None}
        return {"topics": [{"name": self._name(state), "partition_indexes": [0, 1]}]}

    # --- topics, configs and features -------------------------------------------------------------

    def _create_topics(self, state: ClusterState, offset: int) -> Json | None:
        if len(list(state.image.topics)) >= TOPICS_MAX:
            return None
        draw = self.draw
        topics = [self._new_topic(state) for _ in range(draw.choice((1, 1, 2)))]
        if len({topic["name"] for topic in topics}) < len(topics):
            topics.pop()  # ControllerApis rejects a name that comes twice
        return {"topics": topics, "validate_only": draw.random() < 0.08}

    def _new_topic(self, state: ClusterState) -> Json:
        draw = self.draw
        self._created += 1
        name = f"topic{self._created}"
        if self._odd():
            name = draw.choice((self._name(state), "", "..", "a b", name))
        partitions, factor, assignments = draw.randint(1, 4), draw.randint(1, 4), []
        if self._odd():
            partitions, factor = draw.choice(((-1, 3), (2, -1), (0, 1), (1, 0), (1, 9)))
        elif draw.random() < 0.4:
            count = draw.randint(1, 4)
            assignments = [
                {"partition_index": i, "broker_ids": self._replicas(factor)} for i in range(count)
            ]
            if self._odd():
                assignments[-1]["broker_ids"] = draw.choice(([], [1, 1], [9], [0, 1, 2, 3]))
            partitions = factor = -1
        configs = [
            {"name": key, "value": draw.choice(CONFIGS[key])}
            for key in CONFIGS
            if draw.random() < 0.3
        ]
        return {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": factor,
            "assignments": assignments,
            "configs": configs,
        }

    def _delete_topics(self, state: ClusterState, offset: int) -> Json | None:
        topic = self._topic(state)
        if topic is None:
            return None
        return {"topic_id": format_uuid(UUID(int=77) if self._odd() else topic.id)}

    def _create_partitions(self, state: ClusterState, offset: int) -> Json | None:
        draw, topic = self.draw, self._topic(state)
        if topic is None:
            return None
        before = len(topic.partitions)
        count = before + draw.choice((1, 1, 2, 0, -1)) if before < 6 else before
        assignments: list[Json] | None = None
        if draw.random() < 0.4:
            factor = len(topic.partitions[0].replicas) if 0 in topic.partitions else 1
            assignments = [
                {"broker_ids": self._replicas(factor + (1 if self._odd() else 0))}
                for _ in range(max(count - before, 1))
            ]
        return {"name": self._name(state), "count": count, "assignments": assignments}

    def _incremental_alter_configs(self, state: ClusterState, offset: int) -> Json:
        draw = self.draw
        kind = draw.choice(("TOPIC", "TOPIC", "BROKER"))
        name = draw.choice(list(CONFIGS))
        delete = draw.random() < 0.3
        resource = self._name(state) if kind == "TOPIC" else draw.choice(("", "", "0", "3"))
        return {
            "resource_type": kind,
            "resource_name": resource,
            "name": name,
            "operation": "DELETE" if delete else "SET",
            "value": None if delete else draw.choice(CONFIGS[name]),
        }

    def _update_features(self, state: ClusterState, offset: int) -> Json:
        draw = self.draw
        level = state.gates.metadata_version.level
        updates = []
        for feature in draw.sample(self.features, draw.choice((1, 1, 1, 2, 3))):
            wanted = draw.randint(-1, 3)
            if feature == FEATURE_NAME:
                wanted = draw.choice((level, level + 1, level + 2, level - 1, level - 5, 0, 40))
            updates.append(
                {
                    "feature": feature,
                    "max_version_level": wanted,
                    "upgrade_type": draw.choice((1, 1, 2, 3, 0)),
                }
            )
        return {"updates": updates, "validate_only": draw.random() < 0.2}


_DRAWN: dict[str, Callable[[Workload, ClusterState, int], Json | None]] = {
    "broker_heartbeat": Workload._broker_heartbeat,
    "alter_partition": Workload._alter_partition,
    "register_broker": Workload._register_broker,
    "create_topics": Workload._create_topics,
    "maybe_fence_stale_brokers": Workload._nothing,
    "alter_partition_reassignments": Workload._alter_partition_reassignments,
    "elect_leaders": Workload._elect_leaders,
    "incremental_alter_configs": Workload._incremental_alter_configs,
    "assign_replicas_to_dirs": Workload._assign_replicas_to_dirs,
    "maybe_balance_partition_leaders": Workload._nothing,
    "maybe_elect_unclean_leaders": Workload._nothing,
    "create_partitions": Workload._create_partitions,
    "delete_topics": Workload._delete_topics,
    "update_features": Workload._update_features,
    "unregister_broker": Workload._unregister_broker,
    "list_partition_reassignments": Workload._list_partition_reassignments,
}


def features_offered(request: Json, full: range, level: int, *, elr: bool) -> Sequence[Any]:
    """The features of a registration: name, lowest and highest level."""
    top = {"full": full.stop - 1, "narrow": level - 1, "none": None}[request["feature"]]
    offered = [] if top is None else [(FEATURE_NAME, full.start, top)]
    return [*offered, (ELR_VERSION, 0, 1)] if elr else offered
