"""min.insync.replicas as it is in effect, from the configs of a committed log.

Source:  Partition.effectiveMinIsr.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.configs.definitions import topic_configs
from minicluster.metadata.image.configs import BROKER, CLUSTER_DEFAULT, MIN_ISR, TOPIC
from minicluster.protocol.records import ConfigRecord


class MinIsr:
    """The values so far: bounded by the topics and brokers.

    Shapes:  static: the configs of the brokers' own files, by name.
    """

    def __init__(self, static: Mapping[str, Any]) -> None:
        self._set: dict[tuple[int, str], int] = {}
        default = static.get(MIN_ISR) or topic_configs().keys[MIN_ISR].default
        self._default = _number(default) or 1

    def on_config(self, record: ConfigRecord) -> bool:
        """A config is set or removed; False: it is another one."""
        if record.name != MIN_ISR or record.resource_type not in (TOPIC, BROKER):
            return False
        key, value = (record.resource_type, record.resource_name), _number(record.value)
        if value is None:
            self._set.pop(key, None)
        else:
            self._set[key] = value
        return True

    def on_topic_removed(self, topic: str) -> None:
        """The config of a topic goes with it."""
        self._set.pop((TOPIC, topic), None)

    def of(self, topic: str, leader: int, replicas: int) -> int:
        """A topic's own, else its leader's, the cluster's, the files'; at most the replicas."""
        for key in (TOPIC, topic), (BROKER, str(leader)), (BROKER, CLUSTER_DEFAULT):
            if (value := self._set.get(key)) is not None:
                return min(value, replicas)
        return min(self._default, replicas)


def _number(value: Any) -> int | None:
    text = "" if value is None else str(value).strip()
    return int(text) if text.isdecimal() else None
