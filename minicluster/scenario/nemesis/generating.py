"""A scenario from a seed: disturbances within what Kafka promises to survive, then ``liveness``.

Two seeds of ten have every kind at its usual rate. Four are a swarm: each kind is in or out, and
its rate is drawn. Four have a focus: two or three sequences alone, again and again. One of four
gives answers on demand to its clients. Half of the seeds have short timeouts, so that more follows
from a disturbance within a minute; some of these continue in calm after they have healed, some end
with a quiet stretch, as long as the bounds of all promises about time. A fifth has users, whose
rights come and go. All is drawn before anything
runs, and each draw hangs only on the seed and its own name, so that a random run and a script are
the same kind of thing and a step that is left out changes no other.

A seed that is drawn for a planted fault has what the fault needs to act (``Needs``), and its focus
is on the kinds that make it act.

Limits of the disturbances (the fault atlas): one broker alone, always the same, may lose what
it has not flushed, and topics want two in-sync replicas, so no acknowledged record has its last
copies lost; controllers flush before anything counts, so each may lose its tail; one of three or
more controllers may leave the voters, and lose its disk, where voters can change; a controller's
disk reports flushes that it does not do only while all others have everything; no lasting fault
outlives the run.

Source:  FoundationDB's swarm testing, TigerBeetle's VOPR, Jepsen's nemesis packages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from minicluster.durations import format_duration
from minicluster.scenario.nemesis.answers import answer
from minicluster.scenario.nemesis.broker_sequences import BROKER_SEQUENCES
from minicluster.scenario.nemesis.client_sequences import CLIENT_SEQUENCES
from minicluster.scenario.nemesis.controller_sequences import CONTROLLER_SEQUENCES
from minicluster.scenario.nemesis.draws import (
    LOSSY_TOPIC,
    MAY_FAIL,
    NOTHING,
    TOPICS,
    WEEK_MS,
    Draws,
    Kind,
    Needs,
    Step,
    World,
    replicated_load,
    seed_text,
)
from minicluster.scenario.nemesis.election_sequences import ELECTION_SEQUENCES
from minicluster.scenario.nemesis.partition_sequences import PARTITION_SEQUENCES
from minicluster.scenario.nemesis.replica_sequences import REPLICA_SEQUENCES
from minicluster.scenario.nemesis.sequences import SEQUENCES
from minicluster.scenario.nemesis.single import LASTING_EFFECTS, SINGLE
from minicluster.scenario.nemesis.users import changes, config_of_users, producers
from minicluster.scenario.reading import steps_of
from minicluster.scenario.scenario import Scenario

WARM_UP_MS = 3_000
CHAOS_MS = (20_000, 60_000)
SHORT_CHAOS_MS = (10_000, 40_000)  # with short timeouts
LIVENESS_BOUND = "180s"
CLIENTS = 0.3  # how many seeds have groups and transactions
TRANSFORMS = 0.5  # how many of those have both as one: consume, transform, produce
TRANSFORMED_TOPIC = "delta"
ANSWERS = 0.25  # how many seeds have answers on demand for their clients
ANSWERS_PER_MINUTE = 6.0
CALM = 0.2  # how many of those with short timeouts continue after they have healed
LAST_MS = 15_000  # the longest that a seed continues after its last disturbance
CALM_MS = 15_000  # beside two sessions, the time in which all brokers are back
QUIET = 0.5  # how many seeds with short timeouts, and so short bounds, end with a quiet stretch
ELECTED_MS = 7_000  # the bound of the election of a controller
AT_THE_END_MS = 120_000  # the bound of groups, after that of replicas to be in sync
SLOW_NETWORKS = 0.1  # how many seeds have delays beyond a session
KINDS = (
    *SINGLE,
    *SEQUENCES,
    *REPLICA_SEQUENCES,
    *PARTITION_SEQUENCES,
    *BROKER_SEQUENCES,
    *CONTROLLER_SEQUENCES,
    *ELECTION_SEQUENCES,
    *CLIENT_SEQUENCES,
)
FOCUSED = tuple(kind for kind in KINDS if kind not in SINGLE or kind.name in LASTING_EFFECTS)
FOCUSED_PER_MINUTE = 3.0
SHORT_PACE = 2.0  # how many times as often disturbances come with short timeouts


def generate(seed: int, variation: Sequence[int] = (), needs: Needs = NOTHING) -> Scenario:
    """The scenario of a seed, or of a variation of it (``Draws``).

    Shapes:  needs: of a planted fault, which the scenario then has.
    """
    draws = Draws(seed, variation, needs)
    quick = draws.flip("short timeouts")
    world = _world(draws, quick)
    chaos_ms = draws.between("chaos", *(SHORT_CHAOS_MS if quick else CHAOS_MS))
    minutes = chaos_ms / 60_000 * (SHORT_PACE if quick else 1.0)
    events = list(_disturbances(draws, world, chaos_ms, minutes))
    events += changes(draws, WARM_UP_MS, chaos_ms)
    events.sort(key=lambda event: event[0])  # stable: what was drawn first comes first
    steps: list[Step] = [*_load(draws), *_clients(draws), *producers(draws)]
    steps += [{"at": format_duration(at_ms), **step} for at_ms, step in events]
    ends_ms = WARM_UP_MS + chaos_ms
    if events:  # a sequence needs the time to its end
        ends_ms = max(ends_ms, events[-1][0] + min(2 * world.lag_ms, LAST_MS))
    liveness: Step = {"do": "liveness", "bound": LIVENESS_BOUND}
    steps.append({"at": format_duration(ends_ms), **liveness})
    if quick and draws.flip("calm", CALM):
        steps += [*_in_calm(draws, world), liveness]
    if quick and draws.flip("quiet", QUIET):
        steps.append({"after": format_duration(quiet_ms(world)), "do": "wait"})
    text = seed_text(seed, variation)
    return Scenario(
        name="-".join(["nemesis", *map(str, variation)]),
        description=f"drawn from seed {text}",
        controllers=world.controllers,
        brokers=world.brokers,
        seed=seed,
        config=_config_of(draws, world, quick),
        steps=steps_of(steps, f"nemesis {text}"),
    )


def _in_calm(draws: Draws, world: World) -> Iterator[Step]:
    """One disturbance alone, when all that came before has healed, and the time it may take."""
    calm_ms = 2 * world.session_ms + CALM_MS
    if world.controllers >= 3 and draws.flip("calm/disk", 0.4):
        active = "active_controller()"
        yield {"after": format_duration(draws.between("calm/at", 500, 5_000)), "do": "wait"}
        yield {"do": "flush_off", "node": active}
        for n in range(1 + draws.below("calm/decisions", 3)):
            value = {"key": "retention.ms", "value": WEEK_MS + n, **MAY_FAIL}
            yield {"after": "200ms", "do": "set_config", "topic": TOPICS[0], **value}
        down = format_duration(draws.between("calm/down", 20, 300))
        lost: Step = {"do": "bounce", "node": active, "down": down, "lose_tail": "unflushed"}
        yield {"after": "100ms", **lost}
        yield {"after": "10s", "do": "wait"}
    else:
        broker = f"broker({1 + draws.below('calm/broker', world.brokers)})"
        yield {"after": format_duration(calm_ms), "do": "controlled_shutdown", "node": broker}
        yield {"after": format_duration(2 * world.session_ms + 2_000), "do": "wait"}


def quiet_ms(world: World) -> int:
    """The time after ``liveness`` that is longer than each bound of a cluster's promises.

    A test compares it with the bounds themselves (``actors/cluster/time_bounds.py``).
    """
    in_sync_ms = ELECTED_MS + 2 * world.session_ms + world.lag_ms + 5_000
    later_ms = AT_THE_END_MS if world.clients else max(2 * world.request_ms, 10_000)
    return in_sync_ms + later_ms + 1_000


def _world(draws: Draws, quick: bool) -> World:
    controllers = (1, 3, 3, 3, 5)[draws.below("controllers", 5)]
    timeouts: dict[str, Any] = {}
    if quick:
        timeouts = {
            "session_ms": draws.between("timeouts/session", 2_000, 6_000),
            "lag_ms": draws.between("timeouts/lag", 3_000, 10_000),
            "request_ms": draws.between("timeouts/request", 2_000, 8_000),
        }
    return World(
        brokers=(3, 3, 4, 5)[draws.below("brokers", 4)],
        controllers=controllers,
        log_dirs=2 if draws.flip("log dirs", 0.3) else 1,
        victim=1 + draws.below("victim", 3),
        dynamic=controllers >= 3 and draws.flip("dynamic", 0.4),
        clients=_has_clients(draws),
        **timeouts,
    )


def _config_of(draws: Draws, world: World, quick: bool) -> dict[str, Any]:
    config: dict[str, Any] = config_of_users(draws)
    if quick:
        config["broker.session.timeout.ms"] = world.session_ms
        config["broker.heartbeat.interval.ms"] = world.session_ms // 4
        config["replica.lag.time.max.ms"] = world.lag_ms
        config["request.timeout.ms"] = world.request_ms
    if world.log_dirs > 1:
        config["log.dirs"] = ",".join(f"d{n}" for n in range(world.log_dirs))
    if _has_clients(draws):  # what a group commits has to be on two brokers
        config["min.insync.replicas"] = 2
        config["offsets.topic.num.partitions"] = 2
        config["transaction.state.log.num.partitions"] = 2
    if world.dynamic:
        config["kraft.version"] = 1
        config["controller.quorum.auto.join.enable"] = draws.flip("auto join")
    if draws.flip("elr off", 0.25):
        config["eligible.leader.replicas.enable"] = False
    if draws.flip("snapshots"):
        size = draws.between("snapshots/bytes", 1_000, 20_000)
        config["metadata.log.max.record.bytes.between.snapshots"] = size
        if draws.flip("retention"):
            config["metadata.max.retention.bytes"] = 3 * size
    return config


def _load(draws: Draws) -> Iterator[Step]:
    yield from replicated_load(draws)
    yield {"do": "create_topic", "name": LOSSY_TOPIC, "assignment": [[1, 2]], "min_isr": 1}
    rate = 1 + draws.below(f"rate/{LOSSY_TOPIC}", 5)
    yield {"do": "produce", "topic": LOSSY_TOPIC, "rate": rate, "acks": "1"}


def _has_clients(draws: Draws) -> bool:
    return draws.flip("clients", CLIENTS)


def _clients(draws: Draws) -> Iterator[Step]:
    """Groups, and producers that write transactions; some seeds transform one topic to another."""
    if not _has_clients(draws):
        return
    for n in range(1 + draws.below("clients/producers", 2)):
        step = {"do": "transaction", "topic": TOPICS[n], "transactional_id": f"t{n}", "rate": 1}
        yield {**step, "count": 2, "abort_every": 2 + draws.below(f"clients/aborts/{n}", 3)}
    isolation = "read_committed" if draws.flip("clients/isolation", 0.7) else "read_uncommitted"
    protocol = "consumer" if draws.flip("clients/protocol") else "classic"
    members = 1 + draws.below("clients/members", 4)
    for topic in TOPICS:
        step = {"do": "consume", "topic": topic, "group": f"of-{topic}", "isolation": isolation}
        yield {**step, "members": members, "protocol": protocol}
    if draws.flip("clients/transforms", TRANSFORMS):
        yield {"do": "create_topic", "name": TRANSFORMED_TOPIC, "partitions": 2, "min_isr": 2}
        members = 1 + draws.below("clients/transforms/members", 2)
        protocol = "consumer" if draws.flip("clients/transforms/protocol") else "classic"
        step = {"do": "transform", "topic": TOPICS[0], "to": TRANSFORMED_TOPIC, "group": "both"}
        aborts = 2 + draws.below("clients/transforms/aborts", 3)
        yield {**step, "members": members, "protocol": protocol, "abort_every": aborts}


def _background(draws: Draws) -> Iterator[tuple[int, Step]]:
    """Faults of every link, all the time."""
    link: Step = {"src": "all", "dst": "all"}
    for kind in ("loss", "duplicate"):
        if draws.flip(kind):
            p = round(0.1 * draws.fraction(f"{kind}/p"), 3)
            yield WARM_UP_MS, {"do": kind, **link, "p": p}
    if draws.flip("delay"):
        slow = draws.flip("delay/slow", SLOW_NETWORKS)
        mean = draws.between("delay/mean", 100, 1_000) if slow else draws.between("d/mean", 1, 50)
        yield WARM_UP_MS, {"do": "delay", **link, "mean": format_duration(mean)}


def _disturbances(
    draws: Draws, world: World, chaos_ms: int, minutes: float
) -> Iterator[tuple[int, Step]]:
    """Everything that happens after the warm-up; minutes: what the rates count by."""
    rates = _rates(draws)
    if rates is None:
        kinds = _focus(draws, world)
        per_minute = FOCUSED_PER_MINUTE / len(kinds) if draws.needs.kinds else FOCUSED_PER_MINUTE
        rates = [(kind, per_minute) for kind in kinds]
    else:
        yield from _background(draws)
    if draws.flip("answers", ANSWERS):
        for n in range(draws.count("answer", ANSWERS_PER_MINUTE * minutes)):
            at_ms = WARM_UP_MS + draws.below(f"answer/{n}/at", chaos_ms) // 100 * 100
            yield at_ms, answer(draws, f"answer/{n}", world)
    for kind, per_minute in rates:
        for n in range(draws.count(kind.name, per_minute * minutes)):
            name = f"{kind.name}/{n}"
            begins_ms = WARM_UP_MS + draws.below(f"{name}/at", chaos_ms) // 100 * 100
            for after_ms, step in kind.steps(draws, name, world):
                yield begins_ms + after_ms, step


def _rates(draws: Draws) -> list[tuple[Kind, float]] | None:
    """The kinds of a seed and their rates per minute; None for a seed with a focus."""
    mode = draws.below("mode", 10)
    if mode < 4 or draws.needs.kinds:
        return None
    if mode < 6:
        return [(kind, kind.per_minute) for kind in KINDS]
    return [
        (kind, 3 * draws.fraction(f"{kind.name}/rate") * kind.per_minute)
        for kind in KINDS
        if draws.flip(f"{kind.name}/in")
    ]


def _focus(draws: Draws, world: World) -> list[Kind]:
    """Two or three sequences; of a fault, the kinds that it needs, which others would disturb."""
    needed = [kind for kind in KINDS if kind.name in draws.needs.kinds]
    if needed:
        return needed
    candidates = [kind for kind in FOCUSED if kind.fits(world)]
    count = 2 + draws.below("focus", 2)
    return [candidates.pop(draws.below(f"focus/{n}", len(candidates))) for n in range(count)]
