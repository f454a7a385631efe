"""The actions on the network.

Every fault has an inverse, may have a duration, and adds a row with its nodes to the trace table
``fault``. A fault that is already in effect changes nothing and adds a note, so that any step of a
scenario can be left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations, product
from operator import attrgetter
from typing import Any, cast

from minicluster.actors.answers.answer import Answer
from minicluster.actors.cluster.actions.answers import delay_responses, lift_answers
from minicluster.actors.cluster.actions.performing import NothingActedOn, ms, performs
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.actors.cluster.views import ClientNode
from minicluster.actors.exchange import is_client
from minicluster.actors.links import Condition, Kind
from minicluster.errors import UserError
from minicluster.scenario.actions import network as declared
from minicluster.scenario.actions.arguments import Apis, Duration, Nodes


@performs(declared.Cut)
def cut(cluster: ClusterRoles, do: declared.Cut) -> None:
    pairs = _pairs(cluster, do.src, do.dst, both=do.both)
    _disturb(cluster, "cut", pairs, api=do.api, lasting=do.lasting)


@performs(declared.Partition.between)
def partition(cluster: ClusterRoles, do: declared.Partition) -> None:
    resolved = [cluster.ids_with_clients(group) for group in do.groups]
    pairs = [
        (source, target)
        for first, second in combinations(resolved, 2)
        for source, target in product(first, second)
        if source != target
    ]
    if do.symmetric:
        pairs += _backwards(pairs)
    pairs = list(dict.fromkeys(pairs))  # groups may overlap
    _disturb(cluster, "cut", pairs, lasting=do.lasting, action="partition")


@performs(declared.Isolate)
def isolate(cluster: ClusterRoles, do: declared.Isolate) -> None:
    inside = cluster.ids_with_clients(do.node)
    everyone = (*cluster.node_ids, *cluster.client_ids())
    outside = [other for other in everyone if other not in inside]
    pairs = list(product(inside, outside))
    pairs += _backwards(pairs)
    _disturb(cluster, "cut", pairs, lasting=do.lasting, action="isolate")


@performs(declared.Delay)
def delay(cluster: ClusterRoles, do: declared.Delay) -> Answer | None:
    assert do.mean is not None
    if do.src is None or do.dst is None:
        return delay_responses(cluster, do)
    _disturb(
        cluster,
        "delay",
        _pairs(cluster, do.src, do.dst),
        api=do.api,
        lasting=do.lasting,
        mean_ms=int(ms(do.mean)),
        min_ms=0 if do.minimum is None else int(ms(do.minimum)),
        distribution=do.distribution,
    )
    return None


@performs(declared.Loss)
def loss(cluster: ClusterRoles, do: declared.Loss) -> None:
    _disturb_some(cluster, "loss", do)


@performs(declared.Duplicate)
def duplicate(cluster: ClusterRoles, do: declared.Duplicate) -> None:
    _reject_clients(cluster, "duplicate", do)
    _disturb_some(cluster, "duplicate", do)


@performs(declared.Reorder)
def reorder(cluster: ClusterRoles, do: declared.Reorder) -> None:
    _reject_clients(cluster, "reorder", do)
    _disturb_some(cluster, "reorder", do)


@performs(declared.Hold)
def hold(cluster: ClusterRoles, do: declared.Hold) -> None:
    _disturb(cluster, "hold", _pairs(cluster, do.src, do.dst), api=do.api)


@performs(declared.Release)
def release(cluster: ClusterRoles, do: declared.Release) -> None:
    _lift(cluster, _of_kind(cluster, "hold", do), "release")


@performs(declared.Record)
def record(cluster: ClusterRoles, do: declared.Record) -> None:
    _reject_clients(cluster, "record", do)
    _disturb(cluster, "record", _pairs(cluster, do.src, do.dst), api=do.api)


@performs(declared.Replay)
def replay(cluster: ClusterRoles, do: declared.Replay) -> None:
    recorded = _of_kind(cluster, "record", do)
    for condition in recorded:
        cluster.network.release(condition)
    _lift(cluster, recorded, "replay")


@performs(declared.Heal)
def heal(cluster: ClusterRoles, do: declared.Heal) -> None:
    _lift(cluster, _conditions(cluster, do.src, do.dst), "heal")
    if do.src is None and do.dst is None:
        lift_answers(cluster)


def held(cluster: ClusterRoles, src: Nodes | None = None, dst: Nodes | None = None) -> list[Any]:
    """The messages held on these links, in the order of arrival."""
    return [
        packet.body for condition in _conditions(cluster, src, dst) for packet in condition.held
    ]


# How it is done.


def _reject_clients(
    cluster: ClusterRoles,
    word: str,
    do: declared.Duplicate | declared.Reorder | declared.Record,
) -> None:
    """Reject what no connection of TCP does.

    Errors:  UserError that names the client.
    """
    for node_id in (*cluster.ids_with_clients(do.src), *cluster.ids_with_clients(do.dst)):
        if is_client(node_id):
            name = ClientNode(cluster, node_id)
            raise UserError(f"{word}: {name} has connections of TCP, which keep their order")


def _conditions(cluster: ClusterRoles, src: Nodes | None, dst: Nodes | None) -> list[Condition]:
    """The faults in effect on the links between some nodes, or on all links."""
    sources = None if src is None else cluster.ids_with_clients(src)
    targets = None if dst is None else cluster.ids_with_clients(dst)
    pauses = {held for conditions in cluster.paused_clients.values() for held in conditions}
    return [
        condition
        for condition in cluster.network.conditions
        if (sources is None or condition.src in sources)
        and (targets is None or condition.dst in targets)
        and condition not in pauses
    ]


def _of_kind(
    cluster: ClusterRoles, kind: Kind, do: declared.Release | declared.Replay
) -> list[Condition]:
    return [
        condition
        for condition in _conditions(cluster, do.src, do.dst)
        if condition.kind == kind and (not do.api or condition.apis == do.api)
    ]


def _pairs(
    cluster: ClusterRoles, src: Nodes, dst: Nodes, *, both: bool = False
) -> list[tuple[int, int]]:
    sources, targets = cluster.ids_with_clients(src), cluster.ids_with_clients(dst)
    pairs = [(source, target) for source in sources for target in targets if source != target]
    if both:
        pairs += [pair for pair in _backwards(pairs) if pair not in pairs]
    return pairs


def _backwards(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(target, source) for source, target in pairs]


def _disturb_some(
    cluster: ClusterRoles, kind: Kind, do: declared.Loss | declared.Duplicate | declared.Reorder
) -> None:
    pairs, p = _pairs(cluster, do.src, do.dst), float(do.p)
    _disturb(cluster, kind, pairs, api=do.api, lasting=do.lasting, probability=p)


def _disturb(
    cluster: ClusterRoles,
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
    if not pairs:
        raise NothingActedOn(f"{word}: no link lies between these nodes; name two that differ")
    added: list[Condition] = []
    for src, dst in pairs:
        wanted = Condition(kind=kind, src=src, dst=dst, apis=apis, **values)
        if any(_effect(wanted) == _effect(present) for present in cluster.network.conditions):
            cluster.note(word, [[src, dst]], "note", "it is so already")
            continue
        added.append(cluster.network.add(wanted))
    detail = " ".join([*apis, *(f"{name}={value}" for name, value in values.items())])
    cluster.note(word, [_link(condition) for condition in added], "start", detail)
    if lasting is not None:
        cluster.rt.schedule(
            cluster.now_ms + ms(lasting), partial(_lift_later, cluster), (added, word)
        )


def _lift_later(cluster: ClusterRoles, conditions_and_word: tuple[list[Condition], str]) -> None:
    _lift(cluster, *conditions_and_word)


def _lift(cluster: ClusterRoles, conditions: list[Condition], word: str) -> None:
    present = [condition for condition in conditions if condition in cluster.network.conditions]
    cluster.network.lift(present)
    cluster.note(word, [_link(condition) for condition in present], "stop", "")


def _link(condition: Condition) -> list[int]:
    return [condition.src, condition.dst]


_effect = attrgetter(
    "kind", "src", "dst", "apis", "probability", "mean_ms", "min_ms", "distribution"
)
"""The effect of a condition, and its link: two with the same are as good as one."""
