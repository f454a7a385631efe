"""The actions on the network.

Every fault has an inverse, may have a duration, and adds a row with its nodes to the trace table
``fault``. A fault that is already in effect changes nothing and adds a note, so that any step of a
scenario can be left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from minicluster.actors.cluster.actions.performing import ms, performs
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.actors.network import Condition, Kind
from minicluster.scenario.actions import network as declared
from minicluster.scenario.actions.arguments import Apis, Duration, Nodes


class NetworkActions(ClusterRoles):
    """The actions on the network."""

    @performs(declared.Cut)
    def cut(self, do: declared.Cut) -> None:
        pairs = self._pairs(do.src, do.dst, both=do.both)
        self._disturb("cut", pairs, api=do.api, lasting=do.lasting)

    @performs(declared.Partition.between)
    def partition(self, do: declared.Partition) -> None:
        resolved = [self.ids(group) for group in do.groups]
        pairs = [
            (a, b)
            for i, first in enumerate(resolved)
            for second in resolved[i + 1 :]
            for a in first
            for b in second
            if a != b
        ]
        if do.symmetric:
            pairs += [(b, a) for a, b in pairs]
        pairs = list(dict.fromkeys(pairs))  # groups may overlap
        self._disturb("cut", pairs, lasting=do.lasting, action="partition")

    @performs(declared.Isolate)
    def isolate(self, do: declared.Isolate) -> None:
        inside = self.ids(do.node)
        outside = [other for other in self.node_ids if other not in inside]
        pairs = [(a, b) for a in inside for b in outside]
        pairs += [(b, a) for a, b in pairs]
        self._disturb("cut", pairs, lasting=do.lasting, action="isolate")

    @performs(declared.Delay)
    def delay(self, do: declared.Delay) -> None:
        self._disturb(
            "delay",
            self._pairs(do.src, do.dst),
            api=do.api,
            lasting=do.lasting,
            mean_ms=int(ms(do.mean)),
            min_ms=0 if do.min is None else int(ms(do.min)),
            distribution=do.distribution,
        )

    @performs(declared.Loss)
    def loss(self, do: declared.Loss) -> None:
        self._disturb_some("loss", do)

    @performs(declared.Duplicate)
    def duplicate(self, do: declared.Duplicate) -> None:
        self._disturb_some("duplicate", do)

    @performs(declared.Reorder)
    def reorder(self, do: declared.Reorder) -> None:
        self._disturb_some("reorder", do)

    @performs(declared.Hold)
    def hold(self, do: declared.Hold) -> None:
        self._disturb("hold", self._pairs(do.src, do.dst), api=do.api)

    @performs(declared.Release)
    def release(self, do: declared.Release) -> None:
        self._lift(
            [
                condition
                for condition in self._conditions(do.src, do.dst)
                if condition.kind == "hold" and (not do.api or condition.apis == do.api)
            ],
            "release",
        )

    @performs(declared.Heal)
    def heal(self, do: declared.Heal) -> None:
        self._lift(self._conditions(do.src, do.dst), "heal")

    def held(self, src: Nodes | None = None, dst: Nodes | None = None) -> list[Any]:
        """The messages held on these links, in the order of arrival."""
        return [
            packet.body for condition in self._conditions(src, dst) for packet in condition.held
        ]

    # How it is done.

    def _conditions(self, src: Nodes | None, dst: Nodes | None) -> list[Condition]:
        """The faults in effect on the links between some nodes, or on all links."""
        sources = self.node_ids if src is None else self.ids(src)
        targets = self.node_ids if dst is None else self.ids(dst)
        return [c for c in self.network.conditions if c.src in sources and c.dst in targets]

    def _pairs(self, src: Nodes, dst: Nodes, *, both: bool = False) -> list[tuple[int, int]]:
        sources, targets = self.ids(src), self.ids(dst)
        pairs = [(a, b) for a in sources for b in targets if a != b]
        if both:
            pairs += [(b, a) for a, b in pairs if (b, a) not in pairs]
        return pairs

    def _disturb_some(
        self, kind: Kind, do: declared.Loss | declared.Duplicate | declared.Reorder
    ) -> None:
        pairs, p = self._pairs(do.src, do.dst), float(do.p)
        self._disturb(kind, pairs, api=do.api, lasting=do.lasting, probability=p)

    def _disturb(
        self,
        kind: Kind,
        pairs: Sequence[tuple[int, int]],
        *,
        api: Apis | None = None,
        lasting: Duration | None = None,
        action: str | None = None,
        **values: Any,
    ) -> None:
        apis = cast(tuple[str, ...], api or ())
        word = action or kind
        added: list[Condition] = []
        for src, dst in pairs:
            wanted = Condition(kind=kind, src=src, dst=dst, apis=apis, **values)
            if any(_same(wanted, present) for present in self.network.conditions):
                self.note(word, [[src, dst]], "note", "it is so already")
                continue
            added.append(self.network.add(wanted))
        detail = " ".join([*apis, *(f"{k}={v}" for k, v in values.items())])
        self.note(word, [[c.src, c.dst] for c in added], "start", detail)
        if lasting is not None:
            self.rt.schedule(self.now_ms + ms(lasting), self._lift_later, (added, word))

    def _lift_later(self, what: tuple[list[Condition], str]) -> None:
        self._lift(*what)

    def _lift(self, conditions: list[Condition], word: str) -> None:
        present = [c for c in conditions if c in self.network.conditions]
        self.network.lift(present)
        self.note(word, [[c.src, c.dst] for c in present], "stop", "")


def _same(a: Condition, b: Condition) -> bool:
    return (a.kind, a.src, a.dst, a.apis, a.probability, a.mean_ms, a.min_ms, a.distribution) == (
        b.kind, b.src, b.dst, b.apis, b.probability, b.mean_ms, b.min_ms, b.distribution,
    )  # fmt: skip
