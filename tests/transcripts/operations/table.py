"""The operations of controller transcripts: a request is read, decided, put as recorded."""

from __future__ import annotations

from collections.abc import Callable

from tests.transcripts.operations import brokers, features, partitions, topics
from tests.transcripts.operations.results import Result
from tests.transcripts.replayed_controller import Json, ReplayedController

Operation = Callable[[ReplayedController, Json], Result]

OPERATIONS: dict[str, Operation] = {
    "register_broker": brokers.on_register_broker,
    "broker_heartbeat": brokers.on_broker_heartbeat,
    "maybe_fence_stale_brokers": brokers.on_maybe_fence_stale_brokers,
    "maybe_balance_partition_leaders": partitions.on_maybe_balance_partition_leaders,
    "maybe_elect_unclean_leaders": partitions.on_maybe_elect_unclean_leaders,
    "alter_partition": partitions.on_alter_partition,
    "create_topics": topics.on_create_topics,
    "delete_topics": topics.on_delete_topics,
    "create_partitions": topics.on_create_partitions,
    "elect_leaders": partitions.on_elect_leaders,
    "alter_partition_reassignments": partitions.on_alter_partition_reassignments,
    "list_partition_reassignments": partitions.on_list_partition_reassignments,
    "incremental_alter_configs": topics.on_incremental_alter_configs,
    "unregister_broker": brokers.on_unregister_broker,
    "assign_replicas_to_dirs": brokers.on_assign_replicas_to_dirs,
    "update_features": features.on_update_features,
}
