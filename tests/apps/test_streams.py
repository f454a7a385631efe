"""Kafka Streams counts words: at least once, exactly once, with a broker bounced in the midst."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from minicluster import MiniCluster
from tests.apps.programs import jars, needs_kafka
from tests.apps.records import read_committed, write
from tests.kafka.process import JavaProgram, wait_for

pytestmark = [pytest.mark.apps, pytest.mark.slow, needs_kafka()]

COUNT_WORDS = Path(__file__).with_name("java") / "CountWords.java"
RUNS_WITHIN_S = 180.0
PARTITIONS = 4
WORDS = [f"word-{n % 7}" for n in range(1_400)]
OFTEN = 200  # each word


@contextmanager
def counting(guarantee: str, folder: Path) -> Iterator[MiniCluster]:
    """A cluster with a running application."""
    with MiniCluster(brokers=3, controllers=3, seed=24, listeners=True) as cluster:
        for topic in ("words", "counts"):
            cluster.create_topic(topic, partitions=PARTITIONS, replicas=3, min_isr=2)
        streams = JavaProgram(
            COUNT_WORDS,
            *(cluster.bootstrap_servers, guarantee, str(folder / "state")),
            folder=folder,
            class_path=[f"{jars()}/*"],
        )
        try:
            wait_for(
                lambda: "state RUNNING" in streams.lines("state"), RUNS_WITHIN_S, streams.log_lines
            )
            yield cluster
        finally:
            print(streams.log_lines())  # shown where the test has failed
            streams.kill()
        report = cluster.verify(engine="process")
        assert report.valid, report.to_text()


def counts(cluster: MiniCluster) -> dict[str, list[int]]:
    """The counts of each word in the order of their records."""
    by_word: defaultdict[str, list[int]] = defaultdict(list)
    for word, count in read_committed(cluster.bootstrap_servers, "counts", PARTITIONS, len(WORDS)):
        by_word[word].append(int(count))
    return by_word


def test_undisturbed_every_word_is_counted_once(tmp_path: Path) -> None:
    with counting("at_least_once", tmp_path) as cluster:
        write(cluster.bootstrap_servers, "words", WORDS)
        assert counts(cluster) == {word: [*range(1, OFTEN + 1)] for word in set(WORDS)}


def test_at_least_once_no_word_is_lost_when_a_broker_bounces(tmp_path: Path) -> None:
    with counting("at_least_once", tmp_path) as cluster:
        half = len(WORDS) // 2
        write(cluster.bootstrap_servers, "words", WORDS[:half])
        cluster.bounce(cluster.topic("counts")[0].leader, down="4s")
        write(cluster.bootstrap_servers, "words", WORDS[half:])
        for word, of_word in counts(cluster).items():
            assert set(of_word) >= set(range(1, OFTEN + 1)), word


def test_exactly_once_every_count_is_there_once_when_a_broker_bounces(tmp_path: Path) -> None:
    with counting("exactly_once_v2", tmp_path) as cluster:
        third = len(WORDS) // 3
        write(cluster.bootstrap_servers, "words", WORDS[:third])
        cluster.bounce(cluster.topic("counts")[0].leader, down="4s")
        write(cluster.bootstrap_servers, "words", WORDS[third : 2 * third])
        cluster.bounce(cluster.topic("words")[1].leader, down="4s")
        write(cluster.bootstrap_servers, "words", WORDS[2 * third :])
        assert counts(cluster) == {word: [*range(1, OFTEN + 1)] for word in set(WORDS)}
