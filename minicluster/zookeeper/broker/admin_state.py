"""The view of an administrator's request: this broker's metadata, its configs, its controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from minicluster.configs.config_def import InvalidConfig
from minicluster.configs.effective import BrokerLevels
from minicluster.controller.errors import Rejected
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.values import Value
from minicluster.zookeeper.broker.registration import create_recursively
from minicluster.zookeeper.broker.replica_assignment import Racks
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import (
    Check,
    Code,
    Exists,
    GetChildren,
    GetData,
    Multi,
    SetData,
)
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.cluster import BrokerRegistration
from minicluster.zookeeper.znodes.topics import encode_config


class AdminState(Value):
    """The objects that every operation needs."""

    controller: ControllerState
    image: MetadataImage
    broker: BrokerLevels
    new_topic_id: Callable[[], UUID]

    def racks(self) -> Racks:
        """The brokers that are alive, with their racks."""
        return {id_: row.rack for id_, row in sorted(self.image.cluster.brokers.rows.items())}

    def registered_racks(self) -> Process[Racks]:
        """The brokers that are registered, with their racks.

        Source:  kafka.zk.AdminZkClient.getBrokerMetadatas.
        """
        (ids,) = yield (GetChildren(paths.BROKER_IDS),)
        brokers = sorted(int(name) for name in ids.children)
        if not brokers:
            return {}
        results = yield tuple(GetData(paths.broker_id(broker)) for broker in brokers)
        return {
            broker: BrokerRegistration.decode(result.data).rack
            for broker, result in zip(brokers, results, strict=True)
            if result.ok
        }

    def count(self, config: str) -> int:
        """The value of a numeric config of this broker."""
        return int(self.broker.value(config) or 0)

    def set_configs(self, path: str, configs: dict[str, str]) -> Process[None]:
        """Set the configs in a znode, or create it; with a check of /controller since KAFKA-16539.

        Errors:  Rejected without a controller, with one that changes meanwhile, and without a
                 session.
        Source:  kafka.zk.KafkaZkClient.setOrCreateEntityConfigs.
        """
        data = encode_config(configs)
        write: Any = SetData(path, data)
        if self.controller.settings.release.controller_checked_for_configs:
            (active,) = yield (Exists(paths.CONTROLLER),)
            if active.stat is None:
                raise Rejected(
                    ErrorCode.STALE_CONTROLLER_EPOCH,
                    f"Cannot set the configs in {path} when there is no controller.",
                )
            write = Multi((Check(paths.CONTROLLER, active.stat.version), write))
        (result,) = yield (write,)
        code = result.parts[-1].code if result.parts else result.code
        if code is Code.NONODE:
            yield from create_recursively(path, data)
        elif code is not Code.OK:
            raise failed(code)


def failed(code: Code) -> Rejected:
    """The refusal where ZooKeeper fails."""
    return Rejected(ErrorCode.UNKNOWN_SERVER_ERROR, f"ZooKeeper responded {code.name}.")


def rejected(invalid: InvalidConfig, where: str = "") -> Rejected:
    """The refusal of a config; ``where`` comes before a text that names no resource itself."""
    if invalid.error is not None:
        return Rejected(invalid.error, invalid.message)
    return Rejected(ErrorCode.INVALID_CONFIG, where + invalid.message)
