"""Per rule about ZooKeeper's log: a hand-written log that breaks it, and a near miss.

``orders-0`` has replicas 1, 2, 3 and leader 1; broker 1 is the controller.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

STATE = "/brokers/topics/orders/partitions/0/state"
TOPIC = "/brokers/topics/orders"


class ZnodeRun:
    """A run on ZooKeeper, written operation by operation."""

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
        self.lines.append(
            {
                "zxid": self.zxid, "ms": self.ms, "session": f"0x{by}", "broker": by, "op": kind,
                "path": path, "version": 0, "raw": raw, **more,
            }
        )  # fmt: skip
        return self

    def next(self) -> Self:
        self.zxid += 1
        self.ms += 100
        return self

    def register(self, broker: int) -> Self:
        return self.next().op("create", f"/brokers/ids/{broker}", "{}", by=broker, czxid=self.zxid)

    def end(self, broker: int) -> Self:
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
        self.next().op("create", "/controller", "{}", by=broker, multi=[1, 2])
        if not together:
            self.next()
        return self.op("set", "/controller_epoch", str(self.epoch), by=broker, multi=[2, 2])

    def assign(self, replicas: Iterable[int], adding: Iterable[int] = (), name: str = "A") -> Self:
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
        value = {"version": 1, "partitions": [{"topic": "orders", "partition": 0}]}
        path = "/isr_change_notification/isr_change_0000000000"
        return self.next().op("create", path, json.dumps(value), by=by)

    def wait(self, ms: int) -> Self:
        self.ms += ms
        return self

    def write(self, folder: Path) -> Path:
        (folder / "zookeeper").mkdir(parents=True)
        text = "".join(f"{json.dumps(line)}\n" for line in self.lines)
        (folder / "zookeeper" / "log.jsonl").write_text(text)
        header = {"inter_broker_protocol": self.protocol, "ended_at_ms": self.ms}
        (folder / "run.json").write_text(json.dumps(header))
        return folder


Case = Callable[[], ZnodeRun]


def k1_bad() -> ZnodeRun:
    """The epoch of the next controller is not one higher."""
    return ZnodeRun().elect(2, epoch=3)


def k1_apart() -> ZnodeRun:
    return ZnodeRun().elect(2, together=False)


def k1_near() -> ZnodeRun:
    return ZnodeRun().elect(2).state(bump=1, isr=(1, 2))


def k2_bad() -> ZnodeRun:
    """Broker 1 writes on while broker 2 is the controller."""
    run = ZnodeRun().elect(2)
    run.controller, run.epoch = 1, 1
    return run.state(bump=1, isr=(1, 2))


def k2_near() -> ZnodeRun:
    """Below IBP 2.7-IV2 a leader writes with the epoch that it has received."""
    return ZnodeRun("2.6").elect(2).state(by=1, isr=(1, 2), controller_epoch=1)


def k3_bad() -> ZnodeRun:
    return ZnodeRun().state(bump=2, isr=(1, 2))


def k3_near() -> ZnodeRun:
    return ZnodeRun().state(isr=(1, 2)).state(bump=1, leader=2, isr=(2,))


def k4_bad() -> ZnodeRun:
    return ZnodeRun().state(leader=2)


def k4_near() -> ZnodeRun:
    return ZnodeRun().state(leader=2, bump=1)


def k5_bad() -> ZnodeRun:
    return ZnodeRun().state(isr=(1, 2, 4))


def k5_empty() -> ZnodeRun:
    return ZnodeRun().state(isr=(), leader=-1, bump=1)


def k5_twice() -> ZnodeRun:
    return ZnodeRun().state(isr=(1, 1))


def k5_near() -> ZnodeRun:
    return ZnodeRun().assign((4, 1, 2, 3), (4,)).register(4).state(isr=(1, 2, 3, 4))


def k6_bad() -> ZnodeRun:
    return ZnodeRun().state(isr=(2, 3))


def k6_near() -> ZnodeRun:
    return ZnodeRun().state(isr=(2, 3), leader=-1, bump=1)


def k7_bad() -> ZnodeRun:
    """Broker 2 of the ISR is alive."""
    run = ZnodeRun(isr=(1, 2)).end(1)
    return run.state(leader=3, isr=(3,), bump=1, recovering=1)


def k7_not_alone() -> ZnodeRun:
    run = ZnodeRun(isr=(1,)).end(1)
    return run.state(leader=3, isr=(3, 2), bump=1, recovering=1)


def _unclean() -> ZnodeRun:
    run = ZnodeRun(isr=(1,)).elect(2).end(1)
    return run.state(leader=3, isr=(3,), bump=1, recovering=1)


def k7_late() -> ZnodeRun:
    """Broker 2 has been alive for half a minute."""
    run = ZnodeRun(isr=(1, 2)).elect(3).end(1).end(2).register(2).wait(30_000)
    return run.state(leader=3, isr=(3,), bump=1, recovering=1)


def k7_near() -> ZnodeRun:
    return _unclean()


def k7_not_noticed() -> ZnodeRun:
    """Broker 2 of the ISR has just come back; the watch of the controller is on its way."""
    run = ZnodeRun(isr=(1, 2)).elect(3).end(1).end(2).register(2)
    return run.state(leader=3, isr=(3,), bump=1, recovering=1)


def k8_bad() -> ZnodeRun:
    run = ZnodeRun(isr=(1,)).elect(2).end(1)
    return run.state(leader=3, isr=(3,), bump=1)


def k8_ended_by_controller() -> ZnodeRun:
    return _unclean().state(bump=1, recovering=0)


def k8_near() -> ZnodeRun:
    """It stays recovering without a leader, and ends it with its first expansion."""
    run = _unclean().state(leader=-1, bump=1).state(leader=3, bump=1)
    return run.state(isr=(3, 2), recovering=0)


def k9_bad() -> ZnodeRun:
    return ZnodeRun().assign((1, 2, 3), name="B")


def k9_near() -> ZnodeRun:
    """Another topic of this name has another id."""
    run = ZnodeRun().next().op("delete", TOPIC, None, by=1)
    return run.assign((1, 2, 3), name="B").assign((1, 2, 3), name="B")


def k10_bad() -> ZnodeRun:
    return ZnodeRun(isr=(1, 2)).state(isr=(1, 2, 3), bump=1)


def k10_near() -> ZnodeRun:
    return ZnodeRun(isr=(1, 2)).state(isr=(1, 2, 3))


def k11_bad() -> ZnodeRun:
    """The controller itself has removed broker 3."""
    return ZnodeRun().end(3).state(isr=(1, 2), bump=1).state(isr=(1, 2, 3))


def k11_other_controller() -> ZnodeRun:
    return ZnodeRun(isr=(1, 2)).end(3).elect(2).state(isr=(1, 2, 3))


def k11_not_noticed() -> ZnodeRun:
    """Broker 3 has just died; the leader had removed it before."""
    return ZnodeRun(isr=(1, 2)).end(3).state(isr=(1, 2, 3))


def k11_near() -> ZnodeRun:
    return ZnodeRun(isr=(1, 2)).end(3).register(3).state(isr=(1, 2, 3))


def k12_bad() -> ZnodeRun:
    return ZnodeRun().assign((4, 1, 2, 3), (4,)).assign((4, 1, 2))


def k12_near() -> ZnodeRun:
    """The reassignment is cancelled."""
    return ZnodeRun().assign((4, 1, 2, 3), (4,)).assign((1, 2, 3))


def k13_bad() -> ZnodeRun:
    return ZnodeRun("2.6").state(by=1, isr=(1, 2)).wait(71_000).notify(1)


def k13_at_the_end() -> ZnodeRun:
    return ZnodeRun("2.6").state(by=1, isr=(1, 2)).wait(71_000)


def k13_near() -> ZnodeRun:
    return ZnodeRun("2.6").state(by=1, isr=(1, 2)).wait(69_000).notify(1)


BAD: dict[str, tuple[Case, ...]] = {
    "K1": (k1_bad, k1_apart),
    "K2": (k2_bad,),
    "K3": (k3_bad,),
    "K4": (k4_bad,),
    "K5": (k5_bad, k5_empty, k5_twice),
    "K6": (k6_bad,),
    "K7": (k7_bad, k7_not_alone, k7_late),
    "K8": (k8_bad, k8_ended_by_controller),
    "K9": (k9_bad,),
    "K10": (k10_bad,),
    "K11": (k11_bad, k11_other_controller),
    "K12": (k12_bad,),
    "K13": (k13_bad, k13_at_the_end),
}
NEAR: dict[str, tuple[Case, ...]] = {
    "K1": (k1_near,),
    "K2": (k2_near,),
    "K3": (k3_near,),
    "K4": (k4_near,),
    "K5": (k5_near,),
    "K6": (k6_near,),
    "K7": (k7_near, k7_not_noticed),
    "K8": (k8_near,),
    "K9": (k9_near,),
    "K10": (k10_near,),
    "K11": (k11_near, k11_not_noticed),
    "K12": (k12_near,),
    "K13": (k13_near,),
}
