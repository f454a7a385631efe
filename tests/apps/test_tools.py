"""Kafka's command line tools, each as one story on one cluster."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.protocol.messages import DescribeClusterRequest
from tests.apps.programs import jars, needs_kafka
from tests.java import java_command
from tests.kafka.process import wait_for

pytestmark = [pytest.mark.apps, pytest.mark.slow, needs_kafka()]

TOOLS = Path(__file__).with_name("java") / "Tools.java"
TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
ALL_GROUPS = "org.apache.kafka.tools.GroupsCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"
END_TO_END = "org.apache.kafka.tools.EndToEndLatency"
VERIFIABLE_PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
API_VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
CLUSTER = "org.apache.kafka.tools.ClusterTool"
VERIFICATION = "org.apache.kafka.tools.ReplicaVerificationTool"
WITHIN_S = 120.0


@dataclass(frozen=True, slots=True)
class Tools:
    """The JVM in which Kafka's tools run."""

    process: subprocess.Popen[str]

    def run_at(self, main: str, *arguments: str, typed: str = "", fails: bool = False) -> str:
        """Run a tool with these arguments alone, and return its output (one that fails: all)."""
        assert self.process.stdin is not None and self.process.stdout is not None
        tool = {"main": main, "arguments": arguments, "input": typed}
        self.process.stdin.write(json.dumps(tool) + "\n")
        self.process.stdin.flush()
        ended = json.loads(self.process.stdout.readline())
        assert (ended["exit_code"] != 0) == fails, (arguments, ended)
        return ended["output"] + ended["errors"] if fails else ended["output"]


@dataclass(frozen=True, slots=True)
class Shell(Tools):
    """The same for one cluster."""

    cluster: MiniCluster

    def run(self, main: str, *arguments: str, typed: str = "", fails: bool = False) -> str:
        """Run a tool with the cluster's address."""
        return self.run_at(
            main,
            *("--bootstrap-server", self.cluster.bootstrap_servers, *arguments),
            typed=typed,
            fails=fails,
        )

    def run_alone(self, main: str, *arguments: str) -> str:
        """Run a tool that ends with its JVM."""
        command = java_command(main, class_path=[f"{jars()}/*"])
        address = ("--bootstrap-server", self.cluster.bootstrap_servers)
        done = subprocess.run(
            [*command, *address, *arguments], capture_output=True, text=True, timeout=WITHIN_S
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def topic(self, name: str, *, partitions: int = 1) -> str:
        """A topic of three replicas, with a record "first"."""
        shape = ("--partitions", str(partitions), "--replication-factor", "3")
        self.run(TOPICS, "--create", "--topic", name, *shape)
        self.write(name, "first")
        return name

    def write(self, topic: str, *values: str) -> None:
        self.run(CONSOLE_PRODUCER, "--topic", topic, typed="".join(f"{v}\n" for v in values))

    def read(self, topic: str, count: int, *options: str) -> list[str]:
        some = ("--from-beginning", "--max-messages", str(count), "--timeout-ms", "60000")
        return self.run(CONSOLE_CONSUMER, "--topic", topic, *some, *options).splitlines()

    def wait_for(self, holds: Callable[[], bool], what: str) -> None:
        wait_for(holds, WITHIN_S, lambda: what)


def first_words(table: str) -> set[str]:
    """The first column of what a tool printed, without its head."""
    return {line.split()[0] for line in table.splitlines()[1:] if line}


@contextmanager
def java_tools(log: Path) -> Iterator[subprocess.Popen[str]]:
    """The JVM in which tools run one after the other."""
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            java_command(TOOLS, class_path=[f"{jars()}/*"], heap="512m"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    config = {"log.dirs": "d0,d1", "kraft.version": 1}
    log = tmp_path_factory.mktemp("tools") / "java.log"
    with MiniCluster(brokers=3, controllers=3, seed=24, listeners=True, config=config) as cluster:
        with java_tools(log) as process:
            yield Shell(process, cluster)
        report = cluster.verify(engine="process")
        assert report.valid, report.to_text()


def test_topics_are_created_described_altered_and_deleted(shell: Shell) -> None:
    shape = ("--partitions", "2", "--replica-assignment", "1:2,2:3")
    created = shell.run(
        TOPICS, "--create", "--topic", "tea", *shape[2:], "--config", "retention.ms=9000"
    )
    assert "Created topic tea." in created
    described = shell.run(TOPICS, "--describe", "--topic", "tea")
    assert (
        "PartitionCount: 2\tReplicationFactor: 2\tConfigs: min.insync.replicas=1,retention.ms=9000"
        in described
    )
    assert re.search(r"Partition: 1\tLeader: 2\tReplicas: 2,3\tIsr: 2,3", described)
    again = shell.run(TOPICS, "--create", "--topic", "tea", fails=True)
    assert "Topic 'tea' already exists." in again
    shell.run(TOPICS, "--alter", "--topic", "tea", "--partitions", "3")
    assert "Partition: 2" in shell.run(TOPICS, "--describe", "--topic", "tea")
    shell.run(TOPICS, "--delete", "--topic", "tea")
    assert "tea" not in shell.run(TOPICS, "--list").split()


def test_configs_of_topics_brokers_and_quotas_are_altered(shell: Shell) -> None:
    topic = shell.topic("configured")
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    shell.run(CONFIGS, "--alter", *of_topic, "--add-config", "retention.ms=7000")
    assert "retention.ms=7000" in shell.run(CONFIGS, "--describe", *of_topic)
    shell.run(CONFIGS, "--alter", *of_topic, "--delete-config", "retention.ms")
    assert "retention.ms" not in shell.run(CONFIGS, "--describe", *of_topic)
    wrong = shell.run(
        CONFIGS, "--alter", *of_topic, "--add-config", "retention.ms=soon", fails=True
    )
    assert "Invalid value soon for configuration retention.ms" in wrong
    of_broker = ("--entity-type", "brokers", "--entity-name", "2")
    shell.run(CONFIGS, "--alter", *of_broker, "--add-config", "log.cleaner.threads=2")
    every = shell.run(CONFIGS, "--describe", "--all", *of_broker)
    assert re.search(
        r"log\.cleaner\.threads=2 .*DYNAMIC_BROKER_CONFIG:log\.cleaner\.threads=2", every
    )
    of_user = ("--entity-type", "users", "--entity-name", "alice")
    shell.run(CONFIGS, "--alter", *of_user, "--add-config", "producer_byte_rate=1024")
    assert "producer_byte_rate=1024.0" in shell.run(CONFIGS, "--describe", *of_user)


def test_the_console_writes_and_reads(shell: Shell) -> None:
    topic = shell.topic("typed")
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    shell.run(CONSOLE_PRODUCER, "--topic", topic, *keyed, typed="a:second\nb:third\n")
    assert shell.read(topic, 3) == ["first", "second", "third"]
    shown = ("--formatter-property", "print.key=true", "--formatter-property", "print.offset=true")
    assert shell.read(topic, 3, *shown)[1] == "Offset:1\ta\tsecond"
    assert shell.read(topic, 3, "--partition", "0") == ["first", "second", "third"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_listed_described_reset_and_deleted(shell: Shell, protocol: str) -> None:
    topic, group = shell.topic(f"read-by-{protocol}"), f"readers-{protocol}"
    shell.write(topic, "second")
    member = ("--group", group, "--command-property", f"group.protocol={protocol}")
    assert shell.read(topic, 2, *member) == ["first", "second"]
    assert group in shell.run(GROUPS, "--list").split()
    assert re.search(rf"{group}\s+{protocol.title()}", shell.run(ALL_GROUPS, "--list"))
    described = shell.run(GROUPS, "--describe", "--group", group)
    assert re.search(rf"{group}\s+{topic}\s+0\s+2\s+2\s+0\s", described)
    assert "Empty" in shell.run(GROUPS, "--describe", "--group", group, "--state")
    reset = ("--reset-offsets", "--topic", topic, "--to-offset", "1", "--execute")
    shell.run(GROUPS, "--group", group, *reset)
    described = shell.run(GROUPS, "--describe", "--group", group)
    assert re.search(rf"{topic}\s+0\s+1\s+2\s+1\s", described)
    shell.run(GROUPS, "--delete-offsets", "--group", group, "--topic", topic)
    shell.run(GROUPS, "--delete", "--group", group)
    assert group not in shell.run(GROUPS, "--list").split()


def test_transactions_are_listed_described_and_found_hanging(shell: Shell) -> None:
    topic = shell.topic("transacted")
    shell.cluster.transaction(topic, transactional_id="shop", count=2)
    assert "shop" in shell.run(TRANSACTIONS, "list")
    described = shell.run(TRANSACTIONS, "describe", "--transactional-id", "shop")
    assert "CompleteCommit" in described
    producers = shell.run(TRANSACTIONS, "describe-producers", "--topic", topic, "--partition", "0")
    assert "ProducerId" in producers
    hanging = shell.run(TRANSACTIONS, "find-hanging", "--topic", topic)
    assert len(hanging.strip().splitlines()) == 1  # the header
    committed = ("--command-property", "isolation.level=read_committed")
    assert shell.read(topic, 3, *committed)[0] == "first"


def test_a_partition_moves_and_its_preferred_leader_is_elected(
    shell: Shell, tmp_path: Path
) -> None:
    shell.run(TOPICS, "--create", "--topic", "moved", "--replica-assignment", "1:2")
    shell.write("moved", "first")
    plan = tmp_path / "plan.json"
    partition = {"topic": "moved", "partition": 0, "replicas": [3, 1]}
    plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    file = ("--reassignment-json-file", str(plan))
    started = shell.run(REASSIGN, *file, "--execute")
    assert "Successfully started partition reassignment for moved-0" in started
    shell.wait_for(
        lambda: (
            "Reassignment of partition moved-0 is completed."
            in shell.run(REASSIGN, *file, "--verify")
        ),
        "the partition did not move",
    )
    assert "No partition reassignments found." in shell.run(REASSIGN, "--list")
    assert "Leader: 1\tReplicas: 3,1" in shell.run(TOPICS, "--describe", "--topic", "moved")
    elected = shell.run(
        *(ELECT, "--election-type", "preferred", "--topic", "moved", "--partition", "0")
    )
    assert "Successfully completed leader election (PREFERRED) for partitions moved-0" in elected
    assert "Leader: 3" in shell.run(TOPICS, "--describe", "--topic", "moved")
    assert shell.read("moved", 1) == ["first"]


def test_a_reassignment_is_generated(shell: Shell, tmp_path: Path) -> None:
    topic = shell.topic("generated", partitions=2)
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    plan = shell.run(
        *(REASSIGN, "--generate", "--topics-to-move-json-file", str(topics)),
        *("--broker-list", "1,2,3"),
    )
    proposed = json.loads(plan.strip().splitlines()[-1])
    assert [sorted(move["replicas"]) for move in proposed["partitions"]] == [[1, 2, 3]] * 2


@pytest.mark.parametrize("kind", ["server", "controller"])
def test_the_quorum_is_described(shell: Shell, kind: str) -> None:
    cluster = shell.cluster
    address = cluster.bootstrap_servers if kind == "server" else cluster.bootstrap_controllers
    status = shell.run_at(QUORUM, f"--bootstrap-{kind}", address, "describe", "--status")
    assert f"LeaderId:               {cluster.active_controller.id}" in status
    voters = re.search(r"CurrentVoters:\s+(\[.*\])", status)
    assert voters is not None and [v["id"] for v in json.loads(voters[1])] == [101, 102, 103]
    nodes = shell.run_at(QUORUM, f"--bootstrap-{kind}", address, "describe", "--replication")
    assert first_words(nodes) >= {"101", "102", "103", "1", "2"}


def test_features_are_described_and_a_wrong_level_is_rejected(shell: Shell) -> None:
    described = shell.run(FEATURES, "describe")
    assert re.search(r"Feature: metadata\.version\s.*FinalizedVersionLevel: 4\.3-IV0", described)
    wrong = shell.run(FEATURES, "upgrade", "--feature", "transaction.version=9", fails=True)
    assert "transaction.version" in wrong
    shell.run(FEATURES, "downgrade", "--feature", "transaction.version=1", "--dry-run")


def test_log_directories_offsets_and_deleted_records(shell: Shell, tmp_path: Path) -> None:
    topic = shell.topic("stored")
    shell.write(topic, "second", "third")
    output = shell.run(LOG_DIRS, "--describe", "--topic-list", topic)
    brokers = json.loads(output.splitlines()[-1])["brokers"]
    replicas = [p for b in brokers for d in b["logDirs"] for p in d["partitions"]]
    assert [len(b["logDirs"]) for b in brokers] == [2, 2, 2] and len(replicas) == 3
    assert all(replica["size"] > 0 for replica in replicas)
    assert shell.run(OFFSETS, "--topic", topic).strip() == f"{topic}:0:3"
    file = tmp_path / "offsets.json"
    before = {"topic": topic, "partition": 0, "offset": 2}
    file.write_text(json.dumps({"version": 1, "partitions": [before]}))
    deleted = shell.run(DELETE_RECORDS, "--offset-json-file", str(file))
    assert f"partition: {topic}-0\tlow_watermark: 2" in deleted
    assert shell.run(OFFSETS, "--topic", topic, "--time", "earliest").strip() == f"{topic}:0:2"
    assert shell.read(topic, 1) == ["third"]


def test_a_producer_and_a_consumer_are_measured(shell: Shell) -> None:
    topic = shell.topic("measured", partitions=3)
    load = ("--num-records", "5000", "--record-size", "200", "--throughput", "-1")
    sent = shell.run(PRODUCER_PERFORMANCE, "--topic", topic, *load)
    assert re.search(r"5000 records sent, .* ms 99\.9th", sent)
    read = shell.run(
        *(CONSUMER_PERFORMANCE, "--topic", topic, "--num-records", "5001"),
        *("--timeout", "60000"),
    )
    assert read.strip().splitlines()[-1].split(", ")[4] == "5001"
    latency = shell.run(
        *(END_TO_END, "--topic", topic, "--num-records", "20"),
        *("--producer-acks", "all", "--record-size", "100"),
    )
    assert "Avg latency" in latency


def test_verifiable_clients_agree(shell: Shell) -> None:
    topic = shell.topic("verified")
    sent = shell.run_alone(VERIFIABLE_PRODUCER, "--topic", topic, "--max-messages", "100")
    lines = [json.loads(line) for line in sent.splitlines() if line.startswith("{")]
    assert lines[-1]["name"] == "tool_data" and lines[-1]["acked"] == 100
    read = shell.run_alone(
        *(VERIFIABLE_CONSUMER, "--topic", topic, "--group-id", "verifiers"),
        *("--max-messages", "101", "--reset-policy", "earliest"),
    )
    events = [json.loads(line) for line in read.splitlines() if line.startswith("{")]
    assert sum(e["count"] for e in events if e["name"] == "records_consumed") == 101


def test_brokers_show_their_apis_and_the_cluster_its_id(shell: Shell) -> None:
    versions = shell.run(API_VERSIONS)
    assert versions.count("ApiVersions(18): 0 to 4 [usable: 4]") == 3
    address = ("--bootstrap-server", shell.cluster.bootstrap_servers)
    described = shell.run_at(CLUSTER, "cluster-id", *address)
    of_controllers = shell.cluster.admin(DescribeClusterRequest(endpoint_type=2))
    assert len(of_controllers.cluster_id) == 22
    assert f"Cluster ID: {of_controllers.cluster_id}" in described
    endpoints = shell.run_at(CLUSTER, "list-endpoints", *address)
    assert first_words(endpoints) == {"1", "2", "3"}
