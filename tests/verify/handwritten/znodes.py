"""ZooKeeper's transaction logs written by hand, operation by operation.

::

    run = ZnodeRun(isr=(1, 2)).end(3)  # the session of broker 3 ends
    run.state(isr=(1, 2, 3))  # and the ISR takes it in
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from minicluster.zookeeper.znodes.notifications import encode_log_dir_event
from minicluster.zookeeper.znodes.paths import LOG_DIR_EVENT_PREFIX

STATE = "/brokers/topics/orders/partitions/0/state"
TOPIC = "/brokers/topics/orders"


class ZnodeRun:
    """A run on ZooKeeper that grows by one transaction for each call, 100 ms after the one before.

    Brokers 1, 2 and 3 are registered, 1 is the controller and leads orders-0 with these replicas.

    Shapes:  protocol: inter.broker.protocol.version. isr: the ISR that the partition begins with.
    """

    def __init__(self, protocol: str = "3.9", *, isr: tuple[int, ...] = (1, 2, 3)) -> None:
        self.protocol = protocol
        self.lines: list[dict[str, Any]] = []
        self.zxid, self.ms, self.version = 0, 1_000, -1
        self.leader, self.isr, self.leader_epoch, self.recovering = 1, isr, 0, 0
        self.controller, self.epoch = 1, 0
        for broker in (1, 2, 3):
            self.register(broker)
        self.elect(1)
        self.assign((1, 2, 3))
        self.state()

    def op(self, kind: str, path: str, raw: str | None, *, by: int, **more: Any) -> Self:
        """An operation of the present transaction; ``next`` begins another one."""
        self.lines.append(
            {
                "zxid": self.zxid, "ms": self.ms, "session": f"0x{by}", "broker": by, "op": kind,
                "path": path, "version": 0, "raw": raw, **more,
            }
        )  # fmt: skip
        return self

    def next(self) -> Self:
        """The next transaction, 100 ms later."""
        self.zxid += 1
        self.ms += 100
        return self

    def register(self, broker: int) -> Self:
        """A broker creates its znode."""
        return self.next().op("create", f"/brokers/ids/{broker}", "{}", by=broker, czxid=self.zxid)

    def end(self, broker: int) -> Self:
        """The session of a broker ends, and its znode goes."""
        self.next()
        self.lines.append(
            {
                "zxid": self.zxid, "ms": self.ms, "session": f"0x{broker}", "broker": broker,
                "op": "close_session", "deleted": [f"/brokers/ids/{broker}"],
            }
        )  # fmt: skip
        return self

    def elect(self, broker: int, *, epoch: int | None = None, together: bool = True) -> Self:
        """A broker becomes the controller."""
        self.controller, self.epoch = broker, self.epoch + 1 if epoch is None else epoch
        first, second = ({"multi": [1, 2]}, {"multi": [2, 2]}) if together else ({}, {})
        self.next().op("create", "/controller", "{}", by=broker, **first)
        if not together:
            self.next()
        return self.op("set", "/controller_epoch", str(self.epoch), by=broker, **second)

    def assign(self, replicas: Iterable[int], adding: Iterable[int] = (), name: str = "A") -> Self:
        """The controller sets the replicas of orders-0, and the id of the topic."""
        value = {
            "version": 3,
            "partitions": {"0": list(replicas)},
            "adding_replicas": {"0": list(adding)} if adding else {},
            "removing_replicas": {},
            "topic_id": name.ljust(22, "A"),
        }
        return self.next().op("set", TOPIC, json.dumps(value), by=self.controller)

    def state(self, *, by: int | None = None, **changed: Any) -> Self:
        """The controller writes the state, or a leader does; what is not given stays."""
        self.leader = changed.get("leader", self.leader)
        self.isr = changed.get("isr", self.isr)
        self.leader_epoch += changed.get("bump", 0)
        self.recovering = changed.get("recovering", self.recovering)
        value = {
            "controller_epoch": changed.get("controller_epoch", self.epoch),
            "leader": self.leader,
            "version": 1,
            "leader_epoch": self.leader_epoch,
            "isr": list(self.isr),
        }
        if self.recovering:
            value["leader_recovery_state"] = self.recovering
        self.version += 1
        kind = "set" if self.version else "create"
        more = {} if by is not None else {"multi": [2, 2]}
        return self.next().op(
            kind, STATE, json.dumps(value), by=by or self.controller, **more,
        )  # fmt: skip

    def notify(self, by: int) -> Self:
        """A leader notifies the controller of its ISR (below IBP 2.7-IV2)."""
        value = {"version": 1, "partitions": [{"topic": "orders", "partition": 0}]}
        path = "/isr_change_notification/isr_change_0000000000"
        return self.next().op("create", path, json.dumps(value), by=by)

    def fail_directory(self, broker: int) -> Self:
        """A broker notifies the controller of a log directory that it has lost."""
        value = encode_log_dir_event(broker).decode()
        path = f"{LOG_DIR_EVENT_PREFIX}0000000000"
        return self.next().op("create", path, value, by=broker)

    def wait(self, ms: int) -> Self:
        """Time passes."""
        self.ms += ms
        return self

    def write(self, folder: Path) -> Path:
        """Write the run folder."""
        (folder / "zookeeper").mkdir(parents=True)
        text = "".join(f"{json.dumps(line)}\n" for line in self.lines)
        (folder / "zookeeper" / "log.jsonl").write_text(text)
        header = {"inter_broker_protocol": self.protocol, "ended_at_ms": self.ms}
        (folder / "run.json").write_text(json.dumps(header))
        return folder
