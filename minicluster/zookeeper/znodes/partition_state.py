"""The JSON of ``/brokers/topics/<topic>/partitions/<partition>/state`` in ZooKeeper.

Two forms: as shipped, with ``leader_recovery_state`` only while the leader recovers; and as the
older text of KIP-704 has it, with ``is_unclean``. A reader takes either; what is absent means
recovered. The node's ZooKeeper version is the partition epoch and no part of the text. The keys
are in the order in which every release writes them.

Source:  KIP-497, KIP-704; kafka.zk.TopicPartitionStateZNode.
"""

from __future__ import annotations

import json
from typing import Any

from minicluster.protocol.errors import ProtocolError
from minicluster.values import Value

_NAME = "partition state"

# In the requests of a controller to brokers, while a topic is deleted.
LEADER_DURING_DELETE = -2
EPOCH_DURING_DELETE = -2


class PartitionState(Value, kw_only=True):
    """The state of a partition in ZooKeeper."""

    leader: int
    leader_epoch: int
    controller_epoch: int
    isr: tuple[int, ...]
    leader_recovery_state: int = 0

    def to_json(self, *, unclean_flag: bool = False) -> str:
        """The node's text; with ``unclean_flag`` in the form of the older KIP text."""
        value: dict[str, Any] = {
            "controller_epoch": self.controller_epoch,
            "leader": self.leader,
            "version": 1,
        }
        if self.leader_recovery_state and not unclean_flag:
            value["leader_recovery_state"] = self.leader_recovery_state
        value |= {"leader_epoch": self.leader_epoch, "isr": list(self.isr)}
        if unclean_flag:
            value["is_unclean"] = self.leader_recovery_state != 0
        return json.dumps(value, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> PartitionState:
        """Read a node's text.

        Errors:  ProtocolError if it is not a JSON object, or a field is missing or of another type.
        """
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ProtocolError(_NAME, "", f"no JSON: {error}") from error
        if not isinstance(value, dict):
            raise ProtocolError(_NAME, "", "no JSON object")
        isr = value.get("isr")
        if not isinstance(isr, list):
            raise ProtocolError(_NAME, "isr", f"{isr!r} is not a list")
        recovery = _number(value, "leader_recovery_state", 0)
        unclean = value.get("is_unclean", False)
        if not isinstance(unclean, bool):
            raise ProtocolError(_NAME, "is_unclean", f"{unclean!r} is not a boolean")
        return cls(
            leader=_number(value, "leader"),
            leader_epoch=_number(value, "leader_epoch"),
            controller_epoch=_number(value, "controller_epoch"),
            isr=tuple(_number({"isr": member}, "isr") for member in isr),
            leader_recovery_state=recovery or int(unclean),
        )


def _number(value: dict[str, Any], name: str, default: int | None = None) -> int:
    number = value.get(name, default)
    if not isinstance(number, int) or isinstance(number, bool):
        raise ProtocolError(_NAME, name, f"{number!r} is not a number")
    return number
