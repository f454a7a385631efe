"""Groups and transactions under chaos: nothing is lost, doubled, or seen before it is committed.

Two producers write transactions, of which every third is aborted; four members read what is
committed, and two others write it to another topic, exactly once. Meanwhile coordinators and
leaders are killed, paused or isolated.
"""

from __future__ import annotations

import pytest

from minicluster.actors.cluster.actions.records import pause_load
from minicluster.actors.cluster.clients.group_clients import ConsumerGroup
from minicluster.actors.cluster.mini_cluster import MiniCluster, inside
from minicluster.clients.transactional_producer import Transaction
from minicluster.clients.transformer import written_value
from minicluster.errors import UserError
from minicluster.scenario.nemesis import Draws

CONFIG = {"offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2}
ROLES = (
    "leader(__transaction_state-0)",
    "leader(__transaction_state-1)",
    "leader(__consumer_offsets-0)",
    "leader(__consumer_offsets-1)",
    "leader(alpha-0)",
    "leader(alpha-1)",
)
QUICK_SEEDS, SLOW_SEEDS = range(10), range(1_000)


def disturb(cluster: MiniCluster, draws: Draws, number: int) -> None:
    """One broker with a role is killed, paused or isolated for a while."""
    who = ROLES[draws.below(f"who/{number}", len(ROLES))]
    lasting = f"{draws.between(f'lasting/{number}', 200, 12_000)}ms"
    try:
        match draws.below(f"kind/{number}", 3):
            case 0:
                cluster.bounce(who, down=lasting)
            case 1:
                cluster.pause(who, lasting=lasting)
            case _:
                cluster.isolate(who, lasting=lasting)
    except UserError:  # nobody has the role at present
        pass
    cluster.run_for(f"{draws.between(f'gap/{number}', 500, 8_000)}ms")


def play(seed: int, disturbances: int) -> None:
    """Play a seed and check what was written and seen."""
    draws = Draws(seed)
    with MiniCluster(brokers=3, controllers=1, seed=seed, config=CONFIG) as cluster:
        cluster.create_topic("alpha", partitions=2, replicas=3, min_isr=2)
        written: list[Transaction] = []
        loads = [
            cluster.transaction("alpha", transactional_id=f"t{n}", count=2, rate=1, abort_every=3)
            for n in (1, 2)
        ]
        protocol = "classic" if draws.flip("protocol") else "consumer"
        cluster.consume("alpha", members=4, isolation="read_committed", protocol=protocol)
        if draws.flip("transforms"):
            cluster.create_topic("beta", partitions=1, replicas=3, min_isr=2)
            kind = "classic" if draws.flip("transforms/protocol") else "consumer"
            cluster.transform("alpha", to="beta", members=2, protocol=kind, abort_every=4)
        cluster.run_for("1s")
        for number in range(disturbances):
            disturb(cluster, draws, number)
        cluster.heal()
        cluster.wait_until(cluster.topic("alpha").fully_in_sync, within="180s")
        pause_load(inside(cluster))
        producers = inside(cluster).producers.values()
        cluster.wait_until(lambda: all(p.client.is_idle for p in producers), within="120s")
        for load in loads:
            written += load
        _judge(cluster, written)


def _judge(cluster: MiniCluster, written: list[Transaction]) -> None:
    group, *transforms = inside(cluster).groups
    sure = {value.encode() for t in written if t.outcome == "committed" for _, value in t.records}
    cluster.consume("alpha", group="last", isolation="read_committed")
    last = inside(cluster).groups[-1]
    cluster.wait_until(lambda: {r.value for r in last} >= sure, within="120s")
    cluster.run_for("2s")
    values = [record.value for record in last]
    seen = set(values)
    assert len(values) == len(seen), "a record is there twice"
    for transaction in written:
        own = {value.encode() for _, value in transaction.records}
        if transaction.outcome == "aborted":
            assert not own & seen, f"aborted and seen: {transaction}"
        assert own <= seen or not own & seen, f"seen in part: {transaction}"
    cluster.wait_until(lambda: {r.value for r in group} >= seen, within="120s")
    assert {r.value for r in group} == seen, "seen, and not committed"
    if transforms:
        places = sorted(written_value(record).encode() for record in last)
        _judge_transform(cluster, transforms[0], places)


def _judge_transform(cluster: MiniCluster, transform: ConsumerGroup, places: list[bytes]) -> None:
    """Each committed record is in the other topic, once.

    Three of a thousand seeds show a hole of Kafka's: a member goes back to an offset that was given
    by a coordinator which had not heard yet of the next one, and writes again.
    """
    cluster.wait_until(lambda: len({*transform}) >= len(places), within="180s")
    cluster.consume("beta", group="of beta", isolation="read_committed")
    written = inside(cluster).groups[-1]
    cluster.wait_until(lambda: written.seen >= len(places), within="120s")
    cluster.run_for("2s")
    values = sorted(record.value for record in written)
    if values != places:
        assert {*values} == {*places}
        (why,) = cluster.verify(engine="process").rule("H9").exempt
        assert why == "the coordinator had not heard yet of the next one"


@pytest.mark.parametrize("seed", QUICK_SEEDS)
def test_a_short_chaos_loses_and_doubles_nothing(seed: int) -> None:
    play(seed, disturbances=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SLOW_SEEDS)
def test_a_thousand_seeds_lose_and_double_nothing(seed: int) -> None:
    play(seed, disturbances=6)


def test_a_broker_that_is_cut_off_does_not_send_a_consumer_back_to_its_beginning() -> None:
    """KIP-320. It still names itself the leader, and what was read elsewhere is beyond its log."""
    quick = {"broker.session.timeout.ms": "2s", "broker.heartbeat.interval.ms": "500ms"}
    with MiniCluster(brokers=3, controllers=1, seed=1, config=quick) as cluster:
        alpha = cluster.create_topic("alpha", assignment=[[1, 2, 3]], min_isr=2)
        cluster.create_topic("beta", assignment=[[2, 3]], min_isr=1)
        cluster.wait_until(alpha.fully_in_sync, within="30s")
        cluster.produce(alpha, count=5)
        cluster.cut(1, [2, 3, *cluster.controllers], both=True)
        cluster.wait_until(lambda: alpha[0].leader == cluster.node(2), within="30s")
        cluster.transform(alpha, to="beta", abort_every=2)  # each abort looks for the leader again
        for _ in range(30):
            cluster.produce(alpha, count=1)
            cluster.run_for("200ms")
        (transform,) = inside(cluster).groups
        assert len({*transform}) > 30  # H9 is judged as the cluster ends
