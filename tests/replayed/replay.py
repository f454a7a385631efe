"""A recorded run of Apache Kafka, done again on a cluster: the same steps at the same times.

Kafka draws the placement of replicas, so the cluster takes the one that was recorded. Steps about
what no partition depends on (users, quotas, ACLs) are left out.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minicluster import MiniCluster
from minicluster.actors.cluster.actions.requests import raise_if_rejected
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.errors import NoResponse, RequestRejected
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.log.segment import read_segment, write_segment
from minicluster.protocol import messages as m
from minicluster.protocol import records as r
from minicluster.values import replace
from minicluster.verify.evidence.operations import operations_of
from minicluster.verify.evidence.run import Run

FIRST_CONTROLLER = 101
JVM_STARTS_MS = 2_500  # from the step to the first request of the process
WITHIN = "60s"
CATCH_UP_MS = 2_000
SETTINGS = {
    "broker.session.timeout.ms": "3s",
    "broker.heartbeat.interval.ms": "500ms",
    "replica.lag.time.max.ms": "2s",
    "unclean.leader.election.interval.ms": "3s",
    "auto.leader.rebalance.enable": False,
    "controller.quorum.election.timeout.ms": "1s",
    "controller.quorum.fetch.timeout.ms": "1500ms",
    "eligible.leader.replicas.enable": False,
}
LEFT_OUT = (
    *("scram", "acl", "quota", "token"),
    *("nodes", "features", "quorum", "topics", "reassignments"),
)
UNAWAITED = " (sent; no answer awaited)"
UNAWAITED_WITHIN = "1ms"  # the request is on its way, and what becomes of it does not matter


@dataclass(frozen=True, slots=True)
class Step:
    """One step as it was recorded."""

    at_ms: int
    words: tuple[str, ...]
    ok: bool
    out: Any

    @property
    def text(self) -> str:
        return " ".join(self.words)


def recorded_steps(folder: Path) -> list[Step]:
    """The steps of a recorded run, from the moment on at which all brokers were unfenced.

    The last ones stop all nodes at once: which broker hands over first is chance.
    """
    lines = (json.loads(line) for line in (folder / "steps.jsonl").read_text().splitlines())
    steps = [
        Step(line["ms"], tuple(line["do"].split(" ")), line["ok"], line.get("out"))
        for line in lines
    ]
    begun = next(i for i, step in enumerate(steps) if step.text.startswith("wait until unfenced"))
    last_stop = next(
        number
        for number, step in reversed(list(enumerate(steps)))
        if step.words[0] not in ("SIGTERM", "SIGKILL", "ended")
    )
    return steps[begun : last_stop + 1]


def shortened(source: Path, target: Path, end_ms: int, controllers: str = "*") -> Path:
    """The segments of a recorded run without the batches after a moment.

    Shapes:  controllers: a pattern of their ids. A log that begins with a snapshot keeps its first.
    """
    for folder in sorted(source.glob(f"controller-{controllers}/{METADATA_DIRECTORY}")):
        to = target / folder.relative_to(source)
        to.mkdir(parents=True, exist_ok=True)
        for path in sorted(folder.glob("*.log")):
            batches = [one.batch for one in read_segment(path).batches]
            kept = [batch for batch in batches if batch.max_timestamp <= end_ms]
            if kept:
                write_segment(to / path.name, kept)
        if int(min(folder.glob("*.log")).stem) != 0:
            first = min(folder.glob("*.checkpoint"))
            shutil.copy(first, to / first.name)
    return target


def directories(run: Run) -> dict[tuple[str, int, int], int]:
    """The log directory of each replica when it was first assigned to one.

    Shapes:  -> (topic, partition, broker) -> the place of the directory in its broker's list.
    """
    names: dict[Any, str] = {}
    replicas: dict[tuple[Any, int], tuple[int, ...]] = {}
    places: dict[Any, int] = {}
    found: dict[tuple[str, int, int], int] = {}
    for operation in operations_of(run.committed):
        for record in (entry.record for entry in operation.entries):
            if isinstance(record, r.RegisterBrokerRecord):
                places |= {one: place for place, one in enumerate(record.log_dirs)}
            elif isinstance(record, r.TopicRecord):
                names[record.topic_id] = record.name
            elif isinstance(record, r.PartitionRecord | r.PartitionChangeRecord):
                key = record.topic_id, record.partition_id
                replicas[key] = tuple(record.replicas or replicas.get(key, ()))
                for broker, one in zip(replicas[key], record.directories or (), strict=False):
                    if one in places:
                        found.setdefault((names[key[0]], key[1], broker), places[one])
    return found


def placements(run: Run) -> dict[str, list[dict[int, tuple[int, ...]]]]:
    """The replicas of each topic's partitions as they were created, one list per life."""
    names: dict[Any, tuple[str, int]] = {}
    found: dict[str, list[dict[int, tuple[int, ...]]]] = {}
    for operation in operations_of(run.committed):
        for entry in operation.entries:
            record = entry.record
            if isinstance(record, r.TopicRecord):
                lives = found.setdefault(record.name, [])
                names[record.topic_id] = record.name, len(lives)
                lives.append({})
            elif isinstance(record, r.PartitionRecord) and record.topic_id in names:
                name, life = names[record.topic_id]
                found[name][life].setdefault(record.partition_id, tuple(record.replicas))
    return found


def in_snapshot(run: Run) -> dict[str, list[dict[int, tuple[int, ...]]]]:
    """The replicas of the topics that a log begins with, as ``placements`` gives them."""
    names: dict[Any, str] = {}
    found: dict[str, list[dict[int, tuple[int, ...]]]] = {}
    for record in (versioned.record for versioned in run.start.records if run.start):
        if isinstance(record, r.TopicRecord):
            names[record.topic_id] = record.name
            found[record.name] = [{}]
        elif isinstance(record, r.PartitionRecord):
            found[names[record.topic_id]][0][record.partition_id] = tuple(record.replicas)
    return found


@dataclass(slots=True)
class Replay:
    """A replay in progress.

    Shapes:  placed: the replicas that Kafka drew, by topic and life; lives: the current life of
             each topic; begun_ms: the wall-clock time of Kafka at the zero of the cluster's clock;
             held_in: the directories that Kafka drew, as ``directories`` gives them; snapshot_ms:
             when the snapshot was made with which the recorded log begins.
    """

    cluster: MiniCluster
    steps: Sequence[Step]
    placed: Mapping[str, list[dict[int, tuple[int, ...]]]]
    lives: dict[str, int] = field(default_factory=dict)
    begun_ms: int = 0
    within: str = WITHIN  # the response to the step's request
    unfinished: list[Step] = field(default_factory=list)  # what a client sends once more
    held_in: Mapping[tuple[str, int, int], int] = field(default_factory=dict)
    unusable: set[int] = field(default_factory=set)  # nodes that do not start with their disks
    snapshot_ms: int | None = None

    def run(self) -> None:
        """Perform every step; the clock of the cluster never runs ahead of the recorded one."""
        self.begun_ms = self.steps[0].at_ms - self.cluster.now_ms
        for step in self.steps:
            if self.snapshot_ms is not None and step.at_ms > self.snapshot_ms:
                self._run_to(self.snapshot_ms)
                self.snapshot_ms = None
                self.cluster.snapshot(self.cluster.controllers)
                self.cluster.compact(self.cluster.controllers)
            if step.words[0] in ("wait", "ended"):  # recorded when the wait was over
                self._perform(step)
                self._run_to(step.at_ms)
            else:
                self._run_to(step.at_ms)
                self._perform(step)

    def _run_to(self, at_ms: int) -> None:
        wait_ms = at_ms - self.begun_ms - self.cluster.now_ms
        if wait_ms > 0:
            self.cluster.run_for(f"{wait_ms}ms")
        else:
            self.begun_ms += wait_ms  # late: the steps keep their distances

    def _perform(self, step: Step) -> None:
        if self._on_disk(step.text):
            return
        word, *rest = step.text.removesuffix(UNAWAITED).split(" ")
        self.within = UNAWAITED_WITHIN if step.text.endswith(UNAWAITED) else WITHIN
        if word in LEFT_OUT or word == "sleep" or (word == "wait" and not step.ok):
            return
        do = getattr(self, "_" + word.lower().replace("-", "_"), None)
        assert do is not None, f"no way to perform: {step.text}"
        try:
            do(step) if word == "wait" else do(*rest)
        except NoResponse:
            assert self.within == UNAWAITED_WITHIN, step.text
            self.unfinished.append(replace(step, words=(word, *rest)))
            self._not_created(word, rest)
            return
        except RequestRejected:
            assert not step.ok, step.text
            self._not_created(word, rest)
            return
        expected = str(step.out)
        assert step.ok or "Timeout" in expected, f"{step.text}: Kafka refused: {expected}"

    def _not_created(self, word: str, rest: Sequence[str]) -> None:
        if word == "create":
            self.lives[rest[0]] -= 1

    # --- processes --------------------------------------------------------------------------

    def _start(self, node: str) -> None:
        self.cluster.run_for(f"{JVM_STARTS_MS}ms")
        if int(node) not in self.unusable:
            self.cluster.restart(int(node))

    def _sigkill(self, node: str) -> None:
        self.cluster.kill(int(node))

    def _sigterm(self, node: str) -> None:
        self.cluster.controlled_shutdown(int(node))

    def _sigstop(self, node: str) -> None:
        self.cluster.pause(int(node))

    def _sigcont(self, node: str) -> None:
        self.cluster.resume(int(node))

    def _on_disk(self, text: str) -> bool:
        """Perform a step that is about a node's disk; False for any other step."""
        for sentence, do in (
            (r"move away log directory \S+ of broker (\d+), holding \[(.*)\]", self._lose),
            (r"put log directory \S+ of broker (\d+) back", self._put_back),
            (r"erase log directory \S+ of broker (\d+) and start it without .*", self._erase),
            (r"wipe and format (\d+)", self._wipe),
            (r"cordon log directory (\S+) of broker (\d+) by its properties file", self._cordon),
        ):
            if found := re.fullmatch(sentence, text):
                do(*found.groups())
                return True
        return False

    def _lose(self, broker: str, logs: str) -> None:
        names = set(re.findall(r"'(.+?)-(\d+)'", logs))
        places = {self.held_in[name, int(index), int(broker)] for name, index in names}
        [place] = places
        self.cluster.fail_dir(int(broker), directory=place)

    def _put_back(self, broker: str) -> None:
        for place in range(3):
            self.cluster.repair_dir(int(broker), directory=place)

    def _erase(self, broker: str) -> None:
        """A directory without meta.properties: the broker ends while it starts."""
        self.unusable.add(int(broker))

    def _wipe(self, node: str) -> None:
        self.cluster.wipe(int(node))
        self.unusable.discard(int(node))

    def _cordon(self, name: str, broker: str) -> None:
        self.cluster.set_config("cordoned.log.dirs", name, broker=int(broker))

    def _move_dir(self, place: str, broker: str, path: str) -> None:
        name, index = _partition(place)
        self._put_into({(name, index, int(broker)): path.rpartition("/")[2]})

    def _put_into(self, directories: Mapping[tuple[str, int, int], str]) -> None:
        """Name the directories of replicas: of those that are there, and of later ones."""
        request = m.AlterReplicaLogDirsRequest
        for (name, index, broker), directory in directories.items():
            topic = request.AlterReplicaLogDirTopic(name=name, partitions=(index,))
            into = request.AlterReplicaLogDir(path=directory, topics=(topic,))
            self.cluster.admin(request(dirs=(into,)), to=broker)

    def _ended(self, node: str) -> None:
        self.cluster.wait_until(lambda: not self.cluster.node(int(node)).is_running, WITHIN)

    # --- topics -----------------------------------------------------------------------------

    def _create(self, name: str, partitions: str, count: str, *configs: str) -> None:
        life = self.lives[name] = self.lives.get(name, -1) + 1
        lives = self.placed.get(name) or [{}]  # none of a topic that was deleted before
        recorded = lives[min(life, len(lives) - 1)]
        anywhere = inside(self.cluster).broker_ids[: int(count)]
        replicas = [list(recorded.get(index, anywhere)) for index in range(int(partitions))]
        self._create_with(name, replicas, configs)

    def _create_manual(self, name: str, assignment: str, *configs: str) -> None:
        self.lives[name] = self.lives.get(name, -1) + 1
        replicas = [[int(b) for b in one.split(",")] for one in assignment.split(";")]
        self._create_with(name, replicas, configs)

    def _create_with(self, name: str, replicas: list[list[int]], configs: tuple[str, ...]) -> None:
        settings = dict(one.split("=", 1) for one in configs)
        directories = {
            (name, index, broker): f"d{self.held_in[name, index, broker] + 1}"
            for index, brokers in enumerate(replicas)
            for broker in brokers
            if (name, index, broker) in self.held_in
        }
        self._put_into(directories)
        self.cluster.create_topic(
            name, assignment=replicas, configs=settings or None, within=self.within
        )

    def _partitions(self, name: str, total: str, *assignment: str) -> None:
        before = len(self.cluster.topic(name))
        recorded = self.placed[name][self.lives[name]]
        new = [list(recorded[i]) for i in range(before, int(total)) if i in recorded]
        self.cluster.add_partitions(name, int(total), assignment=new or None)

    def _delete(self, *names: str) -> None:
        for name in names:
            self.cluster.delete_topic(name, within=self.within)

    def _reassign(self, *moves: str) -> None:
        for move in moves:
            place, _, target = move.partition("=")
            replicas = None if target == "cancel" else [int(b) for b in target.split(",")]
            self.cluster.reassign(place.replace(":", "-"), replicas)

    def _elect(self, kind: str, *places: str) -> None:
        named = [place.replace(":", "-") for place in places]
        self.cluster.elect(named, election_type=kind.upper())

    def _produce(self, name: str, count: str) -> None:
        topic = self.cluster.topic(name)
        share, rest = divmod(int(count), len(topic))
        for index in range(len(topic)):
            if share + (index < rest):
                self.cluster.produce(topic, partition=index, count=share + (index < rest))

    def _config(self, kind: str, name: str, *settings: str) -> None:
        where: dict[str, Any] = {}
        if kind == "TOPIC":
            where["topic"] = name
        elif name != "-":
            where["broker"] = int(name)
        for setting in settings:
            key, equals, value = setting.rstrip("!").partition("=")
            if key.endswith("-"):
                self._subtract(name, key.removesuffix("-"), value)
                continue
            self.cluster.set_config(key, value if equals else None, **where, within=self.within)

    def _subtract(self, topic: str, key: str, value: str) -> None:
        """Take a value out of a topic's list config."""
        request = m.IncrementalAlterConfigsRequest
        change = request.AlterableConfig(name=key, config_operation=3, value=value)
        resource = request.AlterConfigsResource(
            resource_type=2, resource_name=topic, configs=(change,)
        )
        [response] = self.cluster.admin(request(resources=(resource,))).responses
        raise_if_rejected(f"config of {topic}", response.error_code, response.error_message)

    def _unregister(self, broker: str) -> None:
        if int(broker) in inside(self.cluster).broker_ids:
            self.cluster.unregister(int(broker))
            return
        response = self.cluster.admin(m.UnregisterBrokerRequest(broker_id=int(broker)))
        raise_if_rejected(f"unregister {broker}", response.error_code)

    def _feature(self, name: str, level: str, kind: str = "UPGRADE") -> None:
        request = m.UpdateFeaturesRequest
        update = request.FeatureUpdateKey(
            feature=name,
            max_version_level=int(level),
            upgrade_type={"UPGRADE": 1, "SAFE_DOWNGRADE": 2, "UNSAFE_DOWNGRADE": 3}[kind],
        )
        response = self.cluster.admin(request(feature_updates=(update,), timeout_ms=10_000))
        raise_if_rejected(f"feature {name}", response.error_code, response.error_message)

    def _remove_voter(self, node: str, _directory: str) -> None:
        self.cluster.remove_voter(int(node))

    def _add_voter(self, node: str, *_: str) -> None:
        self.cluster.add_voter(int(node))

    # --- looking ----------------------------------------------------------------------------

    def _describe(self, *names: str) -> None:
        pass

    def _wait(self, step: Step) -> None:
        text = " ".join(step.words[1:])
        cluster = self.cluster
        if found := re.fullmatch(r"until unfenced are \[(.*)\]", text):
            wanted = {int(b) for b in found[1].split(", ")}
            cluster.wait_until(lambda: _unfenced(cluster) == wanted, WITHIN)
        elif found := re.fullmatch(r"until isr of (\S+) is \[(.*)\]", text):
            name, index = _partition(found[1])
            members = {int(b) for b in found[2].split(", ")}
            cluster.wait_until(lambda: set(cluster.topic(name)[index].isr.ids) == members, WITHIN)
        elif found := re.fullmatch(r"until (\S+) has (no|a) leader", text):
            leader = cluster.topic(found[1])[0]
            has = found[2] == "a"
            cluster.wait_until(lambda: (leader.leader is not None) is has, WITHIN)
        elif text.startswith(("until a controller leads", "until controller")):
            cluster.wait_until(lambda: inside(cluster).active_controller_id() is not None, WITHIN)
            unfinished, self.unfinished = self.unfinished, []
            for again in unfinished:
                self._perform(again)
        else:
            raise AssertionError(f"no way to wait: {text}")
        inside(cluster).run_until(lambda: self._is_as_far(step.out), CATCH_UP_MS)

    def _is_as_far(self, out: Any) -> bool:
        """Every partition that the step described has its ISR; Kafka may be ahead of others."""
        described = out.items() if isinstance(out, dict) else ()
        return all(
            set(one["isr"]) <= set(self.cluster.topic(name)[one["partition"]].isr.ids)
            for name, partitions in described
            if isinstance(partitions, list)
            for one in partitions
        )


def lead(cluster: MiniCluster, controller: int) -> None:
    """Let the controllers elect until a certain one leads, as it did where the run was recorded."""
    while (active := inside(cluster).active_controller_id()) != controller:
        if active is not None:
            cluster.resign(active)
        cluster.run_for("3s")


def _unfenced(cluster: MiniCluster) -> set[int]:
    brokers = cluster.image.cluster.brokers.rows
    return {b for b, one in brokers.items() if not one.fenced}


def _partition(text: str) -> tuple[str, int]:
    name, _, index = text.rpartition(":")
    return name, int(index)
