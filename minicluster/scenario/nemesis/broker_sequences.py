"""Sequences around registrations, topics and eligible leader replicas.

Topics of their own hold no records, so that any of their replicas may go.

Source:  KAFKA-18106, -16952, -16757, -13083, -19497, -16892, -14616; the faults of Kafka 4.3.0
         with ELRs.
"""

from __future__ import annotations

from minicluster.durations import format_duration
from minicluster.scenario.nemesis.draws import (
    MAY_FAIL,
    Draws,
    Events,
    Kind,
    Step,
    World,
    fixed_delay,
    for_ms,
    has_directories,
    own_topic,
    some_brokers,
)


def _bounce(node: str, down_ms: int) -> Step:
    return {"do": "bounce", "node": node, "down": format_duration(down_ms)}


def _back_before_the_fence(draws: Draws, name: str, world: World) -> Events:
    """A broker comes back about when its session ends."""
    early_ms = draws.between(f"{name}/early", 100, 2_500)
    yield 0, _bounce(world.broker(draws, name), max(200, world.session_ms + 800 - early_ms))


def _registered_twice(draws: Draws, name: str, world: World) -> Events:
    """The response to a registration is lost, so that the same incarnation registers again."""
    broker = f"broker({1 + draws.below(f'{name}/broker', world.brokers)})"
    lost = {"do": "cut", "src": "controllers", "dst": broker, "api": "BrokerRegistration"}
    down_ms = draws.between(f"{name}/down", 50, world.session_ms + 2_000)
    lasting_ms = down_ms + world.session_ms + draws.between(f"{name}/for", 1_000, 6_000)
    yield 0, {**lost, **for_ms(lasting_ms)}
    yield 100, _bounce(broker, down_ms)


def _late_heartbeats(draws: Draws, name: str, world: World) -> Events:
    """Heartbeats of an incarnation arrive when the next one has registered."""
    broker = f"broker({1 + draws.below(f'{name}/broker', world.brokers)})"
    late_ms = world.session_ms + draws.between(f"{name}/late", 500, 5_000)
    late = {"do": "delay", "src": broker, "dst": "controllers", "api": "BrokerHeartbeat"}
    yield 0, {**late, **fixed_delay(late_ms), **for_ms(draws.between(f"{name}/for", 2_000, 5_000))}
    after_ms = draws.between(f"{name}/after", 500, 4_000)
    yield after_ms, _bounce(broker, draws.between(f"{name}/down", 50, 2_000))


def _fenced_at_creation(draws: Draws, name: str, world: World) -> Events:
    """A topic is created with a replica on a broker that is fenced."""
    assignment = some_brokers(draws, name, world, 3)
    fenced = f"broker({assignment[draws.below(f'{name}/fenced', 3)]})"
    at_ms = world.session_ms + draws.between(f"{name}/at", 1_000, 3_000)
    silent = {"do": "cut", "src": fenced, "dst": "controllers"}
    yield 0, {**silent, **for_ms(at_ms + draws.between(f"{name}/for", 1_000, 5_000))}
    topic = own_topic(name)
    yield at_ms, {"do": "create_topic", "name": topic, "assignment": [assignment], **MAY_FAIL}
    if draws.flip(f"{name}/more", 0.4):
        more = {"total": 2, "assignment": [assignment]}
        yield at_ms + 500, {"do": "add_partitions", "name": topic, **more, **MAY_FAIL}


def _changed_while_away(draws: Draws, name: str, world: World) -> Events:
    """A broker misses that topics come, go or come back, and has to load a snapshot, perhaps."""
    (number,) = some_brokers(draws, name, world, 1)
    broker, old, new = f"broker({number})", own_topic(name, "-old"), own_topic(name, "-new")
    create: Step = {"do": "create_topic", "partitions": 2, "replicas": 3, **MAY_FAIL}
    yield 0, {**create, "name": old}
    yield 100, {**create, "name": new}
    away_ms = 1_500
    lasting_ms = draws.between(f"{name}/for", 3_000, 12_000)
    match draws.below(f"{name}/how", 3):
        case 0:
            yield away_ms, _bounce(broker, lasting_ms)
        case 1:
            yield away_ms, {"do": "pause", "node": broker, **for_ms(lasting_ms)}
        case _:
            no_metadata = {"do": "cut", "src": "controllers", "dst": broker, "api": "Fetch"}
            yield away_ms, {**no_metadata, **for_ms(lasting_ms)}
    if draws.flip(f"{name}/at once", 0.3):
        yield away_ms + 500, {"do": "delete_topic", "name": [old, new], **MAY_FAIL}
    else:
        yield away_ms + 500, {"do": "delete_topic", "name": old, **MAY_FAIL}
        how = "recreate_topic" if draws.flip(f"{name}/anew", 0.6) else "delete_topic"
        yield away_ms + 700, {"do": how, "name": new, **MAY_FAIL}
    short = own_topic(name, "-short")
    yield away_ms + 900, {**create, "name": short, "replicas": 2}
    yield away_ms + 1_100, {"do": "delete_topic", "name": short, **MAY_FAIL}
    if draws.flip(f"{name}/snapshot", 0.6):
        yield away_ms + 1_500, {"do": "snapshot", "node": "controllers"}
        yield away_ms + 1_800, {"do": "compact", "node": "active_controller()"}


def _eligible_replicas(draws: Draws, name: str, world: World) -> Events:
    """Members of an ISR fall below its minimum, and what makes them eligible changes."""
    first, second, third = some_brokers(draws, name, world, 3)
    topic, other = own_topic(name, "-a"), own_topic(name, "-b")
    create: Step = {"do": "create_topic", "assignment": [[first, second]], "min_isr": 2, **MAY_FAIL}
    yield 0, {**create, "name": topic}
    yield 100, {**create, "name": other}
    out_ms = 1_500 + world.session_ms + draws.between(f"{name}/out", 1_500, 3_000)
    back_ms = out_ms + draws.between(f"{name}/back", 3_000, 8_000)
    yield 1_500, _bounce(f"broker({first})", back_ms - 1_500)
    if draws.flip(f"{name}/both", 0.6):
        second_ms = 1_500 + draws.between(f"{name}/second", 50, 1_500)
        order_ms = draws.between(f"{name}/order", 0, 4_000) - 2_000
        yield second_ms, _bounce(f"broker({second})", back_ms + order_ms - second_ms)
    minimum = {"do": "set_config", "topic": topic, "key": "min.insync.replicas", **MAY_FAIL}
    move: Step = {"do": "reassign", "partitions": f"{topic}-0", **MAY_FAIL}
    if draws.flip(f"{name}/minimum"):
        yield out_ms, {**minimum, "value": 1}
    if draws.flip(f"{name}/moves"):
        yield out_ms + 200, {**move, "replicas": [second]}
        yield back_ms + 2_000, {**move, "replicas": [second, first]}
    if draws.flip(f"{name}/gone", 0.6):
        yield out_ms + 400, {"do": "delete_topic", "name": other, **MAY_FAIL}
    if draws.flip(f"{name}/unregistered", 0.3):
        yield out_ms + 600, {"do": "unregister", "broker": f"broker({first})", **MAY_FAIL}
    if world.log_dirs > 1 and draws.flip(f"{name}/directory"):
        directory = {
            "broker": f"broker({first})",
            "directory": draws.below(f"{name}/dir", world.log_dirs),
        }
        yield back_ms + 3_000, {"do": "fail_dir", **directory}
        yield back_ms + 8_000, {"do": "repair_dir", **directory}
        yield back_ms + 9_000, {"do": "restart", "node": f"broker({first})"}
    if draws.flip(f"{name}/again", 0.3):
        yield back_ms + 2_500, {**minimum, "value": 2}
        yield back_ms + 2_600, {**move, "replicas": [third, second]}


def _directories_fail(draws: Draws, name: str, world: World) -> Events:
    """Directories of two brokers fail one after the other, those of leaders among them."""
    if world.log_dirs < 2:
        return
    after_ms = 0
    for broker in some_brokers(draws, name, world, 2):
        place = draws.below(f"{name}/{broker}", world.log_dirs)
        directory = {"broker": f"broker({broker})", "directory": place}
        yield after_ms, {"do": "fail_dir", **directory}
        back_ms = after_ms + draws.between(f"{name}/{broker}/for", 2_000, 8_000)
        yield back_ms, {"do": "repair_dir", **directory}
        yield back_ms + 500, {"do": "restart", "node": f"broker({broker})"}
        after_ms = back_ms + draws.between(f"{name}/{broker}/gap", 1_000, 8_000)


BROKER_SEQUENCES = (
    Kind("back before the fence", 0.4, _back_before_the_fence),
    Kind("registered twice", 0.4, _registered_twice),
    Kind("late heartbeats", 0.4, _late_heartbeats),
    Kind("fenced at creation", 0.4, _fenced_at_creation),
    Kind("changed while away", 0.6, _changed_while_away),
    Kind("eligible replicas", 0.6, _eligible_replicas),
    Kind("directories fail", 0.5, _directories_fail, has_directories),
)
