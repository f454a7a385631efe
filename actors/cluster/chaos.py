"""The disturbances of a cluster as methods: network, processes, metadata.

Every fault has an inverse, may be given a time to last, and leaves a row in the trace table
``fault`` with the nodes that it hit. A fault on something that is affected already changes nothing
and says so in a note, so that any step of a scenario can be left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from minicluster.actors.cluster.views import Node
from minicluster.actors.network import Condition, Distribution, Kind
from minicluster.durations import parse_duration_ms
from minicluster.errors import UserError
from minicluster.scenario.vocabulary import check_api_names

if TYPE_CHECKING:
    from minicluster.actors.network import Network
    from minicluster.actors.recording.recorder import Recorder
    from minicluster.actors.runtime.runtime import Runtime

Nodes: TypeAlias = "Node | int | Iterable[Node | int] | None"
Duration: TypeAlias = "str | timedelta"
Apis: TypeAlias = "str | Sequence[str] | None"


def milliseconds(duration: Duration, *, what: str = "duration") -> int:
    """A duration as a test writes it ("10s" or a timedelta) in milliseconds.

    Errors:  UserError for a bare number or another thing without a unit.
    """
    if isinstance(duration, timedelta):
        return round(duration.total_seconds() * 1000)
    return parse_duration_ms(duration, what=what)


class NetworkChaos:
    """What a test can do to the network; mixed into the cluster."""

    network: Network
    recorder: Recorder
    rt: Runtime
    step: int | None  # the scenario's step that acts now

    @property
    def node_ids(self) -> tuple[int, ...]:
        """All nodes, brokers first."""
        raise NotImplementedError

    # The vocabulary.

    def cut(
        self,
        src: Nodes,
        dst: Nodes,
        *,
        api: Apis = None,
        both: bool = False,
        lasting: Duration | None = None,
    ) -> None:
        """Lose what src sends to dst, or only some APIs; both directions with ``both``."""
        pairs = self._pairs(src, dst, both=both)
        self._disturb("cut", pairs, api=api, lasting=lasting)

    def partition(
        self, *groups: Nodes, symmetric: bool = True, lasting: Duration | None = None
    ) -> None:
        """Lose everything between groups of nodes; else only from earlier to later groups."""
        if len(groups) < 2:
            raise UserError("partition: give at least two groups of nodes")
        resolved = [self._ids(group) for group in groups]
        pairs = [
            (a, b)
            for i, first in enumerate(resolved)
            for second in resolved[i + 1 :]
            for a in first
            for b in second
            if a != b
        ]
        if symmetric:
            pairs += [(b, a) for a, b in pairs]
        pairs = list(dict.fromkeys(pairs))  # groups may overlap
        self._disturb("cut", pairs, lasting=lasting, action="partition")

    def isolate(self, node: Nodes, *, lasting: Duration | None = None) -> None:
        """Cut nodes off from all others."""
        inside = self._ids(node)
        outside = [other for other in self.node_ids if other not in inside]
        pairs = [(a, b) for a in inside for b in outside]
        pairs += [(b, a) for a, b in pairs]
        self._disturb("cut", pairs, lasting=lasting, action="isolate")

    def delay(
        self,
        src: Nodes,
        dst: Nodes,
        mean: Duration,
        *,
        min: Duration | None = None,
        distribution: Distribution = "exponential",
        api: Apis = None,
        lasting: Duration | None = None,
    ) -> None:
        """Deliver late what src sends to dst: min plus a draw that makes up the mean."""
        self._disturb(
            "delay",
            self._pairs(src, dst),
            api=api,
            lasting=lasting,
            mean_ms=milliseconds(mean, what="delay: mean"),
            min_ms=0 if min is None else milliseconds(min, what="delay: min"),
            distribution=distribution,
        )

    def loss(
        self,
        src: Nodes,
        dst: Nodes,
        p: float,
        *,
        api: Apis = None,
        lasting: Duration | None = None,
    ) -> None:
        """Lose some of what src sends to dst."""
        self._disturb(
            "loss", self._pairs(src, dst), api=api, lasting=lasting, probability=_share("loss", p)
        )

    def duplicate(
        self,
        src: Nodes,
        dst: Nodes,
        p: float,
        *,
        api: Apis = None,
        lasting: Duration | None = None,
    ) -> None:
        """Deliver some of what src sends to dst twice."""
        pairs = self._pairs(src, dst)
        share = _share("duplicate", p)
        self._disturb("duplicate", pairs, api=api, lasting=lasting, probability=share)

    def reorder(
        self,
        src: Nodes,
        dst: Nodes,
        p: float,
        *,
        api: Apis = None,
        lasting: Duration | None = None,
    ) -> None:
        """Let some of what src sends to dst be overtaken."""
        pairs = self._pairs(src, dst)
        share = _share("reorder", p)
        self._disturb("reorder", pairs, api=api, lasting=lasting, probability=share)

    def hold(self, src: Nodes, dst: Nodes, *, api: Apis = None) -> None:
        """Keep what src sends to dst until it is released."""
        self._disturb("hold", self._pairs(src, dst), api=api)

    def release(self, src: Nodes = None, dst: Nodes = None, *, api: Apis = None) -> None:
        """Deliver what was held, in its order, and hold no more."""
        names = _apis(api)
        found = [
            condition
            for condition in self.network.conditions
            if condition.kind == "hold"
            and (src is None or condition.src in self._ids(src))
            and (dst is None or condition.dst in self._ids(dst))
            and (not names or condition.apis == names)
        ]
        self._lift(found, "release")

    def held(self, src: Nodes = None, dst: Nodes = None) -> list[Any]:
        """The messages that are held now on these links, in the order in which they came."""
        return [
            packet.body
            for condition in self.network.conditions
            if (src is None or condition.src in self._ids(src))
            and (dst is None or condition.dst in self._ids(dst))
            for packet in condition.held
        ]

    def heal(self, src: Nodes = None, dst: Nodes = None) -> None:
        """Remove network faults: all of them, or those of some links."""
        found = [
            condition
            for condition in self.network.conditions
            if (src is None or condition.src in self._ids(src))
            and (dst is None or condition.dst in self._ids(dst))
        ]
        self._lift(found, "heal")

    # How it is done.

    def _ids(self, nodes: Nodes) -> tuple[int, ...]:
        """Node ids of what a test names.

        Errors:  UserError for nothing at all or for a node that does not exist.
        """
        if nodes is None:
            raise UserError("there is no such node now (None was given)")
        if isinstance(nodes, Node | int):
            nodes = (nodes,)
        found = tuple(node.id if isinstance(node, Node) else node for node in nodes)
        for node_id in found:
            if node_id not in self.node_ids:
                known = ", ".join(str(other) for other in self.node_ids)
                raise UserError(f"there is no node {node_id}; nodes are {known}")
        return found

    def _pairs(self, src: Nodes, dst: Nodes, *, both: bool = False) -> list[tuple[int, int]]:
        sources, targets = self._ids(src), self._ids(dst)
        pairs = [(a, b) for a in sources for b in targets if a != b]
        if both:
            pairs += [(b, a) for a, b in pairs if (b, a) not in pairs]
        return pairs

    def _disturb(
        self,
        kind: Kind,
        pairs: Sequence[tuple[int, int]],
        *,
        api: Apis = None,
        lasting: Duration | None = None,
        action: str | None = None,
        **values: Any,
    ) -> None:
        apis = _apis(api)
        word = action or kind
        lasting_ms = None if lasting is None else milliseconds(lasting, what=f"{word}: lasting")
        added: list[Condition] = []
        for src, dst in pairs:
            wanted = Condition(kind=kind, src=src, dst=dst, apis=apis, **values)
            if any(_same(wanted, present) for present in self.network.conditions):
                self.note(word, [[src, dst]], "note", "it is so already")
                continue
            added.append(self.network.add(wanted))
        detail = " ".join([*apis, *(f"{k}={v}" for k, v in values.items())])
        self.note(word, [[c.src, c.dst] for c in added], "start", detail)
        if lasting_ms is not None:
            self.rt.schedule(self.rt.now() + lasting_ms, self._lift_later, (added, word))

    def _lift_later(self, what: tuple[list[Condition], str]) -> None:
        self._lift(*what)

    def _lift(self, conditions: list[Condition], word: str) -> None:
        present = [c for c in conditions if c in self.network.conditions]
        self.network.lift(present)
        self.note(word, [[c.src, c.dst] for c in present], "stop", "")

    def note(self, action: str, targets: Any, phase: str, detail: str = "") -> None:
        """Leave a row about a disturbance."""
        self.recorder.trace(
            "fault",
            {
                "step": self.step,
                "action": action,
                "targets": targets,
                "phase": phase,
                "detail": detail or None,
            },
        )


def _apis(api: Apis) -> tuple[str, ...]:
    names = () if api is None else (api,) if isinstance(api, str) else tuple(api)
    check_api_names(names, "api")
    return names


def _share(word: str, p: float) -> float:
    if not 0 <= p <= 1:
        raise UserError(f"{word}: {p!r} is not a probability from 0 to 1")
    return float(p)


def _same(a: Condition, b: Condition) -> bool:
    return (a.kind, a.src, a.dst, a.apis, a.probability, a.mean_ms, a.min_ms, a.distribution) == (
        b.kind, b.src, b.dst, b.apis, b.probability, b.mean_ms, b.min_ms, b.distribution,
    )  # fmt: skip
