"""Writes of a broker to ZooKeeper when it starts: the paths, the cluster's id, its own znode.

Source:  kafka.server.KafkaServer.startup; kafka.zk.KafkaZkClient.createTopLevelPaths,
         createOrGetClusterId, registerBroker, CheckedEphemeral.getAfterNodeExists.
"""

from __future__ import annotations

from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import (
    Code,
    Create,
    GetChildren,
    GetData,
    Multi,
    SetData,
)
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.cluster import BrokerRegistration, encode_cluster_id
from minicluster.zookeeper.znodes.topics import decode_config, decode_config_change

REGISTER_AGAIN = "register-again"
REGISTER_BACKOFF_MS = 500  # the znode of the session before is gone when that has timed out


def register(
    broker: int, registration: BrokerRegistration, cluster_id: str, session: int
) -> Process[int | None]:
    """Create what is missing, then the ephemeral znode; returns the broker epoch, its czxid.

    None means that the znode of an earlier session is still there: to be tried again. One of this
    session is from a write whose response was lost.
    """
    for path in paths.PERSISTENT:
        yield from create_recursively(path)
    yield from create_recursively(paths.CLUSTER_ID, encode_cluster_id(cluster_id))
    path = paths.broker_id(broker)
    (result,) = yield (
        Multi((Create(path, ephemeral=True), SetData(path, registration.encode(), 0))),
    )
    if result.code is Code.NODEEXISTS:
        (existing,) = yield (GetData(path),)
        own = existing.stat is not None and existing.stat.ephemeral_owner == session
        return existing.data_and_stat[1].czxid if own else None
    if not result.ok:
        return None
    stat = result.parts[1].stat  # that of the create has none
    assert stat is not None, result
    return stat.czxid


def create_recursively(path: str, data: bytes | None = None) -> Process[None]:
    """Create a persistent znode, and those above it that are missing."""
    (result,) = yield (Create(path, data),)
    if result.code is Code.NONODE:
        yield from create_recursively(path.rpartition("/")[0])
        yield (Create(path, data),)


def read_configs(topics: list[str]) -> Process[dict[str, dict[str, str]] | None]:
    """The configs of topics; None if the session expired before they were read."""
    if not topics:
        return {}
    results = yield tuple(GetData(paths.topic_config(topic)) for topic in topics)
    if any(result.code == Code.SESSIONEXPIRED for result in results):
        return None
    return {
        topic: decode_config(result.data) if result.ok else {}
        for topic, result in zip(topics, results, strict=True)
    }


def read_broker_configs(broker: int) -> Process[dict[str, dict[str, str]]]:
    """The configs of all brokers, whose name is empty, and of this one.

    A broker that starts finds in the notifications, which stay, whether there are any.

    Source:  kafka.server.DynamicBrokerConfig.initialize.
    """
    names = ("", str(broker))
    results = yield tuple(GetData(paths.broker_config(name)) for name in names)
    return {
        name: decode_config(result.data) if result.ok else {}
        for name, result in zip(names, results, strict=True)
        if result.code in (Code.OK, Code.NONODE)
    }


def changed_entities(seen: set[str]) -> Process[list[tuple[str, str]]]:
    """The kinds and names in config changes that were not seen before; the watch is set again."""
    (children,) = yield (GetChildren(paths.CONFIG_CHANGES, watch=True),)
    new = [name for name in children.children if name not in seen]
    seen.update(new)
    if not new:
        return []
    results = yield tuple(GetData(f"{paths.CONFIG_CHANGES}/{name}") for name in new)
    entities = [decode_config_change(result.data) for result in results if result.ok]
    return [(kind, name) for kind, _, name in (entity.partition("/") for entity in entities)]
