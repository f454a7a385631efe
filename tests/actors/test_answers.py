"""Answers on demand: what clients do when a node answers otherwise, or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.cluster.views import Partition
from minicluster.actors.play.player import play
from minicluster.actors.play.replay import replay_run
from minicluster.clients.produce import produce_request
from minicluster.errors import NeverFired, UserError
from minicluster.log.batch import Record
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.uuids import format_uuid
from minicluster.scenario import parse_scenario
from minicluster.values import replace
from tests.verify.in_process import verified

CONFIG = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}
BOTH = pytest.mark.parametrize("runtime", ["simulated", "threaded"])


def started(runtime: str = "simulated", **options: Any) -> MiniCluster:
    running = MiniCluster(
        brokers=3, controllers=1, seed=24, config=CONFIG, runtime=runtime, **options
    ).start()
    orders = running.create_topic("orders", partitions=2, min_isr=2)
    leads(running, *orders)
    return running


def leads(cluster: MiniCluster, *partitions: Partition) -> None:
    """Wait until brokers know that they lead: a request before is sent again."""
    cluster.wait_until(lambda: all(one.high_watermark >= 0 for one in partitions))


@pytest.fixture
def cluster() -> Iterator[MiniCluster]:
    with started() as running:
        yield running


def answered(cluster: MiniCluster) -> list[dict[str, Any]]:
    """The requests that got something else than what their node said."""
    return [row for row in inside(cluster).recorder.table("rpc") if row["answer"] is not None]


def hits(cluster: MiniCluster) -> list[str]:
    rows = [row for row in inside(cluster).recorder.table("fault") if row["phase"] == "hit"]
    return [f"{row['action']} {row['detail']}".split(":")[0] for row in rows]


def values(cluster: MiniCluster, topic: str = "orders") -> list[bytes | None]:
    """What the log of the leader of a topic's first partition holds."""
    leader = inside(cluster).leader_id(topic, 0)
    assert leader is not None
    log = inside(cluster).disks[leader].log(f"{topic}-0")
    return [record.value for batch in log.batches for record in batch.records]


# --- errors ---------------------------------------------------------------------------------------


@BOTH
def test_a_record_that_was_written_and_timed_out_is_sent_again_and_comes_once(
    runtime: str, tmp_path: Path
) -> None:
    with started(runtime) as cluster:
        late = cluster.respond("Produce", "REQUEST_TIMED_OUT", when="after")
        outcomes = cluster.produce("orders", count=2, idempotent=True)

        assert [one.offset for one in outcomes] == [0, 1]
        assert late.hits == 1 and late.is_over
        cluster.wait_until(lambda: inside(cluster).high_watermark("orders", 0) == 2)
        assert len(values(cluster)) == 2
        [row] = answered(cluster)
        assert row["response"]["responses"][0]["partitionResponses"][0]["errorCode"] == 0
        said = row["answer"]["response"]["responses"][0]["partitionResponses"][0]
        assert said["errorCode"] == ErrorCode.REQUEST_TIMED_OUT
        run = cluster.save(tmp_path / "run")
    assert not verified(run).findings


@BOTH
def test_a_producer_that_hears_three_times_of_another_leader_asks_again(runtime: str) -> None:
    with started(runtime) as cluster:
        refused = cluster.respond("Produce", "NOT_LEADER_OR_FOLLOWER", times=3)
        [outcome] = cluster.produce("orders")

        assert outcome.ok and outcome.tries == 3 and refused.hits == 3
        assert values(cluster) == [outcome.value]
        assert [row["handle_seq"] for row in answered(cluster)] == [None] * 3


def test_errors_of_a_list_take_turns(cluster: MiniCluster) -> None:
    answer = cluster.respond("Produce", ["NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS"])
    [outcome] = cluster.produce("orders")
    assert outcome.ok and answer.hits == 2
    assert hits(cluster) == ["respond NOT_LEADER_OR_FOLLOWER", "respond NOT_ENOUGH_REPLICAS"]


def test_the_answer_that_was_given_first_is_first(cluster: MiniCluster) -> None:
    cluster.respond("Produce", "NOT_ENOUGH_REPLICAS", times=2)
    second = cluster.respond("Produce", "INVALID_RECORD")
    [outcome] = cluster.produce("orders")
    assert outcome.failure == "INVALID_RECORD" and outcome.tries == 2 and second.is_over


def test_an_error_acts_while_it_lasts_and_until_it_is_lifted(cluster: MiniCluster) -> None:
    lasting = cluster.respond("Produce", "NOT_ENOUGH_REPLICAS", lasting="2s")
    began_ms = cluster.now_ms
    [outcome] = cluster.produce("orders")
    assert outcome.ok and lasting.hits >= 3 and cluster.now_ms - began_ms >= 2_000
    healed = cluster.respond("Produce", "INVALID_RECORD", times=100)
    lifted = cluster.respond("Produce", "INVALID_RECORD", times=100)
    lifted.lift()
    lifted.lift()
    cluster.heal()
    assert cluster.produce("orders")[0].ok and healed.is_over and not healed.hits + lifted.hits


def test_an_acknowledgement_of_what_nobody_wrote_accuses_nobody(
    cluster: MiniCluster, tmp_path: Path
) -> None:
    cluster.respond("Produce", "NONE")
    first, second = cluster.produce("orders")[0], cluster.produce("orders")[0]
    assert first.ok and first.offset == -1 and second.offset == 0
    assert values(cluster) == [second.value]
    assert not verified(cluster.save(tmp_path / "run")).findings


def test_an_error_without_acks_ends_the_connection(cluster: MiniCluster) -> None:
    """Kafka closes it, since there is no response that could carry an error."""
    cluster.respond("Produce", "NOT_LEADER_OR_FOLLOWER")
    cluster.produce("orders", acks="0")
    cluster.run_for("1s")
    [row] = answered(cluster)
    assert row["answer"]["response"] is None and row["resp_seq"] is None and not values(cluster)


# --- for some of the requests ---------------------------------------------------------------------


def produce_to_both(cluster: MiniCluster) -> list[ErrorCode]:
    """One request of version 13, by topic id, with a record for each partition; their errors."""
    kind = m.ProduceRequest
    batches = [
        produce_request(("pair", index), Record(0, 0, None, b"x"), acks=-1, timeout_ms=9_000)
        .topic_data[0].partition_data[0]
        for index in (0, 1)
    ]  # fmt: skip
    topic_id = cluster.image.topics.named("pair").id  # type: ignore[union-attr]
    topic = kind.TopicProduceData(topic_id=topic_id, partition_data=tuple(batches))
    request = kind(acks=-1, timeout_ms=9_000, topic_data=(topic,))
    response = cluster.admin(request, to=inside(cluster).leader_id("pair", 0))
    [responded] = response.responses
    found = {data.index: data.error_code for data in responded.partition_responses}
    return [ErrorCode.for_code(found[index]) for index in (0, 1)]


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_error_of_one_partition_leaves_the_other_to_the_broker(when: Any) -> None:
    with started() as cluster:
        leads(cluster, *cluster.create_topic("pair", assignment=[[1, 2, 3], [1, 2, 3]]))
        error = ErrorCode.KAFKA_STORAGE_ERROR
        cluster.respond("Produce", error.name, partitions="pair-1", when=when)

        assert produce_to_both(cluster) == [ErrorCode.NONE, error]
        cluster.wait_until(lambda: inside(cluster).high_watermark("pair", 0) == 1)
        written = inside(cluster).high_watermark("pair", 1)
        assert written == (0 if when == "before" else 1)
        assert produce_to_both(cluster) == [ErrorCode.NONE, ErrorCode.NONE]


def test_an_answer_is_for_a_node_a_version_a_topic_and_a_client(cluster: MiniCluster) -> None:
    leader = inside(cluster).leader_id("orders", 0)
    leads(cluster, *cluster.create_topic("other", replicas=1))
    topic_id = format_uuid(cluster.image.topics.named("other").id)  # type: ignore[union-attr]
    elsewhere = [
        cluster.respond("Produce", "INVALID_RECORD", node=[n for n in (1, 2, 3) if n != leader]),
        cluster.respond("Produce", "INVALID_RECORD", versions="10+"),
        cluster.respond("Produce", "INVALID_RECORD", topic="other"),
        cluster.respond("Produce", "INVALID_RECORD", topic_id=topic_id),
        cluster.respond("Produce", "INVALID_RECORD", partitions=["orders-1", "other-0"]),
        cluster.respond("Produce", "INVALID_RECORD", client="somebody"),
        cluster.respond("Fetch", "NOT_LEADER_OR_FOLLOWER"),
    ]
    assert cluster.produce("orders")[0].ok
    assert [one.hits for one in elsewhere] == [0] * 7
    elsewhere[-1].lift()
    assert cluster.produce("other")[0].failure == "INVALID_RECORD"


def test_followers_fetch_as_ever(cluster: MiniCluster) -> None:
    """Requests between nodes are no client's."""
    cluster.respond("Fetch", "NOT_LEADER_OR_FOLLOWER", lasting="30s")
    assert cluster.produce("orders")[0].ok


def test_a_consumer_that_is_sent_away_asks_for_the_leader_and_reads_on(
    cluster: MiniCluster, tmp_path: Path
) -> None:
    written = cluster.produce("orders", count=3)
    moved = cluster.respond("Fetch", "NOT_LEADER_OR_FOLLOWER", partitions="orders-0", times=2)
    hidden = cluster.respond("Metadata", "LEADER_NOT_AVAILABLE", topic="orders")
    found = cluster.consume("orders", count=3)
    assert [one.value for one in found] == [w.value for w in written]
    assert (moved.hits, hidden.hits) == (2, 1)
    assert not verified(cluster.save(tmp_path / "run")).findings


# --- no response ----------------------------------------------------------------------------------


@BOTH
def test_a_member_whose_join_got_no_response_joins_again(runtime: str) -> None:
    """The group has it already, and another member takes the place that it was given."""
    config = {"group.initial.rebalance.delay.ms": "100ms"}
    with MiniCluster(
        brokers=1, controllers=1, seed=5, runtime=runtime, config={**CONFIG, **config}
    ) as cluster:
        cluster.create_topic("orders", replicas=1)
        cluster.produce("orders")
        lost = (
            cluster.close_connections("JoinGroup")
            if runtime == "threaded"
            else cluster.drop_responses("JoinGroup")
        )
        found = cluster.consume("orders", count=1, within="3m")
        assert len(found) == 1 and lost.hits == 1


@BOTH
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_connection_that_ends_in_the_middle_of_a_commit_leaves_one_outcome(
    runtime: str, when: Any, tmp_path: Path
) -> None:
    with started(runtime) as cluster:
        ended = cluster.close_connections("EndTxn", when=when)
        [transaction] = cluster.transaction("orders", count=2)
        assert transaction.outcome == "committed" and ended.hits == 1
        found = cluster.consume("orders", count=2, isolation="read_committed")
        assert sorted(one.value.decode() for one in found) == sorted(
            value for _, value in transaction.records
        )
        run = cluster.save(tmp_path / "run")
    assert not verified(run).findings


def test_a_request_that_is_dropped_before_it_arrives_has_no_effect(cluster: MiniCluster) -> None:
    dropped = cluster.drop_responses("Produce", when="before")
    [outcome] = cluster.produce("orders", within="3s")
    assert outcome.failure == "timeout" and dropped.hits == 1 and not values(cluster)


# --- late responses -------------------------------------------------------------------------------


def test_the_responses_of_one_api_come_late(cluster: MiniCluster) -> None:
    cluster.produce("orders")
    late = cluster.delay(api="Produce", mean="2s", distribution="fixed", topic="orders", times=2)
    assert late is not None
    began_ms = cluster.now_ms
    first, _, third = (cluster.produce("orders")[0] for _ in range(3))
    assert first.ok and third.ok and late.hits == 2 and late.is_over
    assert 4_000 <= cluster.now_ms - began_ms < 4_500


def test_a_response_that_is_later_than_its_client_waits_is_lost(
    cluster: MiniCluster, tmp_path: Path
) -> None:
    """It was written at once; an idempotent producer sends it again, and it comes once."""
    cluster.delay(api="Produce", mean="40s", distribution="fixed")
    [outcome] = cluster.produce("orders", idempotent=True)
    assert outcome.offset == 0 and outcome.unsure and len(values(cluster)) == 1
    cluster.run_for("30s")
    assert not verified(cluster.save(tmp_path / "run")).findings


def test_a_delay_is_of_a_link_or_of_responses(cluster: MiniCluster) -> None:
    with pytest.raises(UserError, match="name src and dst, or the api"):
        cluster.delay(mean="2s")
    with pytest.raises(UserError, match="a link has src and dst"):
        cluster.delay(1, mean="2s")
    with pytest.raises(UserError, match="times is of responses to clients"):
        cluster.delay(1, 2, "2s", times=3)
    with pytest.raises(UserError, match="delay: it needs 'mean'"):
        cluster.delay(1, 2)


# --- functions of a test --------------------------------------------------------------------------


@BOTH
def test_a_function_sees_each_request_and_lets_it_go_on(runtime: str) -> None:
    with started(runtime) as cluster:
        seen: list[m.ProduceRequest] = []
        handle = cluster.intercept("Produce", seen.append, topic="orders")
        assert all(one.ok for one in cluster.produce("orders", count=2))
        handle.lift()
        assert cluster.produce("orders")[0].ok
        assert [type(one) for one in seen] == [m.ProduceRequest] * 2
        assert handle.hits == 2
        assert not answered(cluster) and not inside(cluster).is_repeatable


def test_a_function_answers_in_place_of_the_node(cluster: MiniCluster, tmp_path: Path) -> None:
    """The acknowledgement of an offset that the log never had accuses nobody."""

    def lie(request: m.ProduceRequest) -> m.ProduceResponse:
        kind = m.ProduceResponse
        done = kind.PartitionProduceResponse(index=0, error_code=0, base_offset=41)
        topic = kind.TopicProduceResponse(name="orders", partition_responses=(done,))
        return kind(responses=(topic,))

    cluster.intercept("Produce", lie, times=1)
    told, written = cluster.produce("orders")[0], cluster.produce("orders")[0]
    assert (told.offset, written.offset) == (41, 0)
    assert not verified(cluster.save(tmp_path / "run")).findings


def test_a_function_passes_another_request_on(cluster: MiniCluster, tmp_path: Path) -> None:
    """The node is judged by the request that it got."""

    def without_waiting(request: m.ProduceRequest) -> m.ProduceRequest:
        return replace(request, acks=1)

    cluster.isolate(cluster.topic("orders")[0].followers)
    handle = cluster.intercept("Produce", without_waiting)
    [outcome] = cluster.produce("orders", acks="all", within="5s")
    assert outcome.ok and handle.hits == 1
    cluster.heal()
    assert handle.is_over
    [row] = answered(cluster)
    assert row["request"]["acks"] == 1 and row["answer"]["what"] == "without_waiting"
    assert not verified(cluster.save(tmp_path / "run")).findings


def test_a_generator_changes_the_response(cluster: MiniCluster, tmp_path: Path) -> None:
    """A member that is shown an end that the log has not reached seeks there, and is exempt."""
    cluster.produce("orders", count=4)

    def from_the_third(request: m.OffsetFetchRequest) -> Any:
        response = yield request
        assert isinstance(response, m.OffsetFetchResponse)

        def moved(value: Any) -> Any:
            if hasattr(value, "committed_offset"):
                at = 2 if getattr(value, "partition_index", 0) == 0 else value.committed_offset
                return replace(value, committed_offset=at)
            if not hasattr(value, "schema"):
                return value
            arrays = {
                spec.name: tuple(map(moved, getattr(value, spec.name)))
                for spec in value.schema
                if spec.type_ == "array" and getattr(value, spec.name)
            }
            return replace(value, **arrays)

        return moved(response)

    handle = cluster.intercept("OffsetFetch", from_the_third, times=1)
    found = cluster.consume("orders", count=2)
    assert [one.offset for one in found] == [2, 3]
    assert handle.hits == 1
    assert not verified(cluster.save(tmp_path / "run")).findings


@pytest.mark.parametrize("end", ["drop", "close", "reset"])
def test_a_function_leaves_a_request_without_a_response(cluster: MiniCluster, end: str) -> None:
    handle = cluster.intercept("Produce", lambda _: end, times=1)
    [outcome] = cluster.produce("orders")
    failures = {"drop": "timeout", "close": "disconnected", "reset": "reset"}
    assert outcome.failure == failures[end] and handle.hits == 1 and not values(cluster)


@BOTH
def test_what_a_function_raises_leaves_through_the_next_wait(runtime: str) -> None:
    with started(runtime) as cluster:

        def broken(request: m.ProduceRequest) -> None:
            raise LookupError("of the test")

        cluster.intercept("Produce", broken, times=1)
        with pytest.raises(LookupError, match="of the test"):
            cluster.produce("orders")
        cluster.intercept("Produce", lambda _: m.FetchResponse(), times=1)
        with pytest.raises(UserError, match=r"gave FetchResponse.*ProduceResponse"):
            cluster.produce("orders")
        assert cluster.produce("orders")[0].ok


def test_a_run_says_that_no_file_repeats_it(cluster: MiniCluster, tmp_path: Path) -> None:
    def look(request: m.ProduceRequest) -> None:
        """Look, and let it go on."""

    cluster.intercept("Produce", look)
    cluster.produce("orders")
    run = cluster.save(tmp_path / "run")
    assert json.loads((run / "run.json").read_text())["intercepted"] == [
        "look: 1 request of Produce"
    ]
    report = verified(run)
    [rule] = [rule for rule in report.to_dict()["rules"] if rule["id"] == "X1"]
    assert "look: 1 request of Produce" in json.dumps(rule)
    with pytest.raises(UserError, match="functions of its test saw requests"):
        replay_run(run, runs=tmp_path)


# --- mistakes -------------------------------------------------------------------------------------


def test_mistakes_are_told_in_one_line(cluster: MiniCluster) -> None:
    with pytest.raises(UserError, match=r"respond: error: unknown error 'REQUEST_TIMEDOUT'.*OUT"):
        cluster.respond("Produce", "REQUEST_TIMEDOUT")
    with pytest.raises(UserError, match=r"versions: Produce has versions \d+ to \d+, none of 99"):
        cluster.drop_responses("Produce", versions=99)
    with pytest.raises(UserError, match="no client sends ZooKeeperPing"):
        cluster.close_connections("ZooKeeperPing")


def test_the_same_seed_gives_the_same_answers() -> None:
    def trace() -> str:
        with started() as cluster:
            cluster.respond("Produce", "REQUEST_TIMED_OUT", when="after", times=2)
            cluster.drop_responses("EndTxn")
            cluster.produce("orders", count=3, idempotent=True)
            cluster.transaction("orders", within="3m")
            assert json.dumps([row["answer"] for row in answered(cluster)])
            return cluster.trace_hash

    assert trace() == trace()


def test_an_answer_that_must_fire_fails_the_run_that_never_needed_it(tmp_path: Path) -> None:
    needed = "api: Produce, error: NOT_LEADER_OR_FOLLOWER, must_fire: true"
    with MiniCluster(brokers=1, controllers=1) as cluster:
        cluster.create_topic("orders")
        cluster.respond("Produce", "NOT_LEADER_OR_FOLLOWER", must_fire=True)
        cluster.produce("orders")
    with (
        pytest.raises(NeverFired, match="respond: Fetch NOT_LEADER_OR_FOLLOWER"),
        MiniCluster(brokers=1, controllers=1) as cluster,
    ):
        cluster.respond("Fetch", "NOT_LEADER_OR_FOLLOWER", must_fire=True)
    for more, kind in (("", "expect"), ("\n  - {do: produce, topic: orders}", None)):
        steps = f"  - {{do: create_topic, name: orders}}\n  - {{do: respond, {needed}}}{more}\n"
        text = f"name: needed\ncluster: {{brokers: 1, controllers: 1}}\nsteps:\n{steps}"
        failure = play(parse_scenario(text), runs=tmp_path).failure
        assert (failure.kind if failure else None) == kind
