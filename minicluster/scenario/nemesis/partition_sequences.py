"""Sequences around a partition of their own, whose replicas are given and lead in turn.

Its records are sent with acks=1: any of its replicas may lose them. Most of the sequences run
with no broker down, so that they end before a follower that fetches nothing leaves the ISR.

Source:  KAFKA-7395, -12686, -13790, -15221; KIP-107, KIP-279, KIP-320; TigerBeetle's replays.
"""

from __future__ import annotations

from minicluster.durations import format_duration
from minicluster.scenario.nemesis.draws import (
    LATE,
    MAY_FAIL,
    Draws,
    Events,
    Kind,
    Step,
    World,
    fixed_delay,
    for_ms,
    is_quick,
    own_topic,
    some_brokers,
    topic_of,
)

FETCH_BACKOFF_MS = 1_100  # a little more than replica.fetch.backoff.ms


def _created(topic: str, replicas: list[int], min_isr: int = 1) -> Step:
    how: Step = {"assignment": [replicas], "min_isr": min_isr, **MAY_FAIL}
    return {"do": "create_topic", "name": topic, **how}


def _load(topic: str, rate: int, lasting_ms: int, batch: int = 1) -> Step:
    load: Step = {"do": "produce", "topic": topic, "rate": rate, "acks": "1", **for_ms(lasting_ms)}
    return load if batch == 1 else {**load, "batch": batch}


def _turn(topic: str, at_ms: int, *replicas: int) -> Events:
    """The first of the replicas leads from now on, if it is in sync."""
    partition: Step = {"partitions": f"{topic}-0", "may_fail": True, "within": "1s"}
    yield at_ms, {"do": "reassign", "replicas": list(replicas), **partition}
    yield at_ms + 100, {"do": "elect", **partition}


def _fetches(src: int, dst: int, lasting_ms: int) -> Step:
    """The fetches of one broker from another are lost."""
    return {"do": "cut", "src": src, "dst": dst, "api": "Fetch", **for_ms(lasting_ms)}


def _leads_with_less(draws: Draws, name: str, world: World) -> Events:
    """The next leader is behind another follower, and the leader before it leads again.

    The follower fetches from neither meanwhile, so that its log ends as nobody's does.
    """
    first, second, third = some_brokers(draws, name, world, 3)
    topic = own_topic(name)
    yield 0, _created(topic, [first, second, third])
    behind_ms = draws.between(f"{name}/behind", 200, 800)
    stays_ms = draws.between(f"{name}/stays", FETCH_BACKOFF_MS, FETCH_BACKOFF_MS + 800)
    away_ms = 1_500 + behind_ms
    again_ms = away_ms + stays_ms
    yield 300, _load(topic, 30, again_ms + 2_000)
    # It ends before the turn, for it takes the responses to the other broker's fetches as well.
    yield 1_500, _fetches(second, first, behind_ms + 50)
    yield 1_500, _fetches(third, second, behind_ms + stays_ms + 3_000)
    yield from _turn(topic, away_ms, second, first, third)
    late_ms = draws.between(f"{name}/late", 200, 1_000)
    yield away_ms + 150, _fetches(third, first, stays_ms + late_ms)
    yield from _turn(topic, again_ms, first, second, third)


def _leads_again_unseen(draws: Draws, name: str, world: World) -> Events:
    """The leadership goes away and comes back while one replica has no metadata of either."""
    brokers = some_brokers(draws, name, world, 3)
    topic = own_topic(name)
    yield 0, _created(topic, brokers)
    dark = brokers[draws.below(f"{name}/dark", 3)]
    away_ms = 1_500 + draws.between(f"{name}/away", 100, 500)
    again_ms = away_ms + draws.between(f"{name}/again", 200, 1_500)
    dark_ms = again_ms + draws.between(f"{name}/for", 500, 5_000)
    yield 300, _load(topic, 20, dark_ms + 1_000)
    unseen = {"do": "publish_delay", "broker": dark, "delay": LATE}
    yield 1_500, {**unseen, **for_ms(dark_ms - 1_500)}
    first, second, third = brokers
    yield from _turn(topic, away_ms, second, first, third)
    yield from _turn(topic, again_ms, first, second, third)


def _isr_before_its_metadata(draws: Draws, name: str, world: World) -> Events:
    """Responses bring a leader two changes of its ISR before the metadata of the first one.

    A third one is on its way for as long.
    """
    if not is_quick(world):
        return
    first, second, third = some_brokers(draws, name, world, 3)
    topic, lag_ms = own_topic(name), world.lag_ms
    yield 0, _created(topic, [first, second, third])
    begins_ms, out_ms = 1_500, lag_ms * 3 // 2 + draws.between(f"{name}/out", 300, 1_000)
    delay_ms = lag_ms + draws.between(f"{name}/delay", 800, 4_000)
    lasting_ms = out_ms + 2 * delay_ms + lag_ms
    yield 300, _load(topic, 10, begins_ms + lasting_ms)
    late = {"do": "publish_delay", "broker": first, "delay": format_duration(delay_ms)}
    yield begins_ms, {**late, **for_ms(lasting_ms)}
    yield begins_ms, _fetches(second, first, out_ms)
    if draws.flip(f"{name}/third", 0.7):
        also_ms = begins_ms + lag_ms // 2 + draws.between(f"{name}/also", 500, 1_500)
        yield also_ms, _fetches(third, first, lasting_ms)
        slow = {"do": "delay", "src": first, "dst": "controllers", "api": "AlterPartition"}
        slow_ms = begins_ms + out_ms + 600
        yield slow_ms, {**slow, **fixed_delay(2 * lag_ms), **for_ms(delay_ms + lag_ms)}


def _empty_while_fenced(draws: Draws, name: str, world: World) -> Events:
    """A fenced follower has caught up, loses its log, and fetches once it is unfenced again."""
    others = [broker for broker in some_brokers(draws, name, world, 3) if broker != world.victim]
    topic, victim = own_topic(name), world.victim
    yield 0, _created(topic, [others[0], victim, *others[1:2]])
    yield 500, _load(topic, 20, 800)
    silent = {"do": "cut", "src": victim, "dst": "controllers"}
    falls_ms = 2_000 + world.session_ms + draws.between(f"{name}/fenced", 1_000, 4_000)
    yield 2_000, {**silent, **for_ms(falls_ms - 2_000)}
    link: Step = {"src": victim, "dst": "brokers", "api": "Fetch"}
    yield falls_ms, {"do": "hold", **link}
    down_ms = draws.between(f"{name}/down", 50, 1_500)
    lost = {"do": "bounce", "node": victim, "lose_tail": "unflushed"}
    yield falls_ms + 50, {**lost, "down": format_duration(down_ms)}
    back_ms = falls_ms + down_ms + draws.between(f"{name}/back", 1_500, 6_000)
    slow = {"do": "delay", "src": "brokers", "dst": victim, "api": "Fetch"}
    yield back_ms - 100, {**slow, **fixed_delay(1_000), **for_ms(3_000)}
    yield back_ms, {"do": "release", **link}


def _records_deleted(draws: Draws, name: str, world: World) -> Events:
    """A log begins in the middle of a batch when its leader is away and back."""
    brokers = some_brokers(draws, name, world, 1 + draws.below(f"{name}/replicas", 3))
    topic = own_topic(name)
    yield 0, _created(topic, brokers)
    batch = 2 + draws.below(f"{name}/batch", 6)
    yield 300, _load(topic, 40, 1_000, batch)
    deleted: Step = {"do": "delete_records", "partitions": f"{topic}-0", **MAY_FAIL}
    elect: Step = {"do": "elect", "partitions": f"{topic}-0", "may_fail": True, "within": "500ms"}
    at_ms = 2_000
    for n in range(1 + draws.below(f"{name}/count", 2)):
        before = (n + 1) * 10 + draws.below(f"{name}/{n}/before", 10)
        yield at_ms, {**deleted, "before": before}
        at_ms += draws.between(f"{name}/{n}/gap", 100, 2_000)
        down_ms = draws.between(f"{name}/{n}/down", 50, 3_000)
        yield at_ms, {"do": "bounce", "node": brokers, "down": format_duration(down_ms)}
        at_ms += down_ms
        for _ in range(8):  # the first replica leads as soon as it is in sync
            at_ms += draws.between(f"{name}/{n}/elect", 150, 400)
            yield at_ms, elect
    if len(brokers) > 1 and draws.flip(f"{name}/turns"):
        yield from _turn(topic, at_ms, *reversed(brokers))
        yield from _turn(topic, at_ms + 1_000, *brokers)
    yield at_ms + 1_500, _load(topic, 20, 1_000)


def _requests_again(draws: Draws, name: str, world: World) -> Events:
    """Requests of brokers come a second time, when a leader or an incarnation has followed."""
    topic = topic_of(draws, name)
    leader = f"leader({topic}-0)"
    link: Step = {"src": "brokers", "dst": "controllers"}
    link["api"] = ("AlterPartition", "BrokerHeartbeat")[draws.below(f"{name}/api", 2)]
    yield 0, {"do": "record", **link}
    at_ms = draws.between(f"{name}/for", 1_000, 3_000)
    if link["api"] == "AlterPartition" and is_quick(world):
        out_ms = world.lag_ms * 3 // 2 + 500
        lagging = {"do": "cut", "src": f"follower({topic}-0)", "dst": leader, "api": "Fetch"}
        yield 200, {**lagging, **for_ms(out_ms)}
        at_ms = out_ms + 1_000
    down_ms = draws.between(f"{name}/down", 100, world.session_ms + 3_000)
    yield at_ms, {"do": "bounce", "node": leader, "down": format_duration(down_ms)}
    later_ms = at_ms + down_ms + draws.between(f"{name}/later", 100, 6_000)
    yield later_ms, {"do": "replay", **link}


def _made_anew_while_away(draws: Draws, name: str, world: World) -> Events:
    """A broker comes back with the log of a topic that was deleted and made again by its name."""
    brokers = some_brokers(draws, name, world, 3)
    topic = own_topic(name)
    yield 0, _created(topic, brokers)
    yield 300, _load(topic, 20, 800)
    down_ms = world.session_ms + draws.between(f"{name}/down", 500, 4_000)
    away = {"do": "bounce", "node": brokers[draws.below(f"{name}/away", 3)]}
    yield 1_500, {**away, "down": format_duration(down_ms)}
    at_ms = 1_500 + draws.between(f"{name}/at", 300, world.session_ms)
    yield at_ms, {"do": "recreate_topic", "name": topic, **MAY_FAIL}
    if draws.flip(f"{name}/again"):
        yield 1_500 + down_ms, _load(topic, 20, 1_000)


PARTITION_SEQUENCES = (
    Kind("leads with less", 0.5, _leads_with_less),
    Kind("leads again unseen", 0.5, _leads_again_unseen),
    Kind("ISR before its metadata", 0.5, _isr_before_its_metadata, is_quick),
    Kind("empty while fenced", 0.5, _empty_while_fenced),
    Kind("records deleted", 0.5, _records_deleted),
    Kind("requests again", 0.5, _requests_again),
    Kind("made anew while away", 0.5, _made_anew_while_away),
)
