"""Topics and configs, as the broker that is the controller writes them for clients.

Each write is single, without a check of the controller epoch; the controller finds it by a watch.
Checks of names and sizes look at this broker's metadata first, as Kafka's do: what UpdateMetadata
has not brought yet is found in ZooKeeper.

Versions: CreateTopics 0-7, DeleteTopics 0-6, CreatePartitions 0-3, AlterConfigs 0-2,
          IncrementalAlterConfigs 0-1, UpdateFeatures 0-2.
Leaves out: policies, quotas, configs of brokers.
Source:   KIP-195, KIP-339, KIP-464, KIP-516; kafka.server.ZkAdminManager, KafkaApis.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol import messages as m
from minicluster.zookeeper.broker.administration.admin_state import AdminState
from minicluster.zookeeper.broker.administration.alter_configs import alter_configs
from minicluster.zookeeper.broker.administration.create_partitions import create_partitions
from minicluster.zookeeper.broker.administration.create_topics import create_topics
from minicluster.zookeeper.broker.administration.delete_topics import delete_topics
from minicluster.zookeeper.broker.administration.update_features import update_features
from minicluster.zookeeper.process import Process


def process_admin(state: AdminState, request: Any, version: int) -> Process[Any]:
    """The response to a request of an administrator.

    Errors:  TypeError for a request of another kind.
    """
    match request:
        case m.CreateTopicsRequest():
            return (yield from create_topics(state, request))
        case m.DeleteTopicsRequest():
            return (yield from delete_topics(state, request, version))
        case m.CreatePartitionsRequest():
            return (yield from create_partitions(state, request))
        case m.AlterConfigsRequest() | m.IncrementalAlterConfigsRequest():
            return (yield from alter_configs(state, request))
        case m.UpdateFeaturesRequest():
            return update_features(state, request, version)
    raise TypeError(f"no admin request: {type(request).__name__}")


ADMIN_REQUESTS = (
    m.CreateTopicsRequest,
    m.DeleteTopicsRequest,
    m.CreatePartitionsRequest,
    m.AlterConfigsRequest,
    m.IncrementalAlterConfigsRequest,
    m.UpdateFeaturesRequest,
)
