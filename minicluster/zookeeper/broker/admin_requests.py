"""Topics and configs, as the broker that is the controller writes them for clients.

Each write is single, without a check of the controller epoch; the controller finds it by a watch.
Checks of names and sizes look at this broker's metadata first, as Kafka's do: what UpdateMetadata
has not brought yet is found in ZooKeeper.

Versions: CreateTopics 0-7, DeleteTopics 0-6, CreatePartitions 0-3, AlterConfigs 0-2,
          IncrementalAlterConfigs 0-1, UpdateFeatures 0-2.
Leaves out: policies, quotas.
Source:   KIP-195, KIP-339, KIP-464, KIP-516; kafka.server.ZkAdminManager, KafkaApis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minicluster.protocol import messages as m
from minicluster.zookeeper.broker.admin_state import AdminState
from minicluster.zookeeper.broker.alter_configs import alter_configs
from minicluster.zookeeper.broker.create_partitions import create_partitions
from minicluster.zookeeper.broker.create_topics import create_topics
from minicluster.zookeeper.broker.delete_topics import delete_topics
from minicluster.zookeeper.broker.update_features import update_features
from minicluster.zookeeper.process import Process

_DECIDED_BY: Mapping[type, Callable[[AdminState, Any, int], Process[Any]]] = {
    m.CreateTopicsRequest: create_topics,
    m.DeleteTopicsRequest: delete_topics,
    m.CreatePartitionsRequest: create_partitions,
    m.AlterConfigsRequest: alter_configs,
    m.IncrementalAlterConfigsRequest: alter_configs,
    m.UpdateFeaturesRequest: update_features,
}
ADMIN_REQUESTS: tuple[type[Any], ...] = tuple(_DECIDED_BY)


def process_admin(state: AdminState, request: Any, version: int) -> Process[Any]:
    """The response to a request of an administrator.

    Errors:  TypeError for a request of another kind.
    """
    if not isinstance(request, ADMIN_REQUESTS):
        raise TypeError(f"no admin request: {type(request).__name__}")
    return _DECIDED_BY[type(request)](state, request, version)
