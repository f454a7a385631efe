"""One test under the disturbances of many seeds: what they are, how a play ended, what it hangs on.

A test's body is played in a cluster of its own for each seed, by pytest in this process or in a
child; either is a ``Player`` here. First it is played alone. That shows which programs and topics
there are, and how long it takes: disturbances begin while it would run. A seed that fails is played
again, shrunk, and played without chance.
"""

from __future__ import annotations

import json
import os
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from msgspec import field
from msgspec.structs import asdict

from minicluster.actors.cluster.apps import open_programs
from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.recording.live_checks import InvariantViolated
from minicluster.durations import format_duration
from minicluster.errors import UserError, WaitTimeout, instead
from minicluster.scenario.actions.arguments import Milliseconds, read_duration
from minicluster.scenario.nemesis.apps import (
    LASTING_MAX_MS,
    WORDS,
    Disturbance,
    disturbances,
    kinds_of,
    simpler,
)
from minicluster.scenario.nemesis.draws import World
from minicluster.scenario.shrink import Shrunk, shrink
from minicluster.values import Value, replace

if TYPE_CHECKING:
    from minicluster.actors.cluster.mini_cluster import MiniCluster

ALONE = 0  # the seed that is played without disturbances
BEGIN_WITHIN_MS = 60_000  # of a long test: disturbances begin in its first minute
REPLAYS_MAX = 60
OWN_TOPICS = "__"  # a cluster's own topics begin with it
BODY = "test"  # the program that an async body is
CHANCE = ("shuffles", "latency")  # what can be taken from a play, in this order


class Play(Value, kw_only=True):
    """A play of the test, to come.

    Shapes:  shuffles: programs meet drawn orders and latencies of their loops; latency: that of
             packets is drawn; calm_ms: how long everything runs on, healed, after the last of it.
             lists_requests: also where it passes; a play that fails does.
    """

    seed: int
    disturbances: tuple[Disturbance, ...] = ()
    calm_ms: int = 0
    shuffles: bool = True
    latency: bool = True
    lists_requests: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The play as plain values."""
        drawn = [each.to_dict() for each in self.disturbances]
        return {**asdict(self), "disturbances": drawn}

    @classmethod
    def of_dict(cls, value: dict[str, Any]) -> Play:
        """The play that ``to_dict`` has made plain."""
        drawn = tuple(map(Disturbance.of_dict, value["disturbances"]))
        return cls(**{**value, "disturbances": drawn})


class Failure(Value, kw_only=True):
    """How a test has failed.

    Shapes:  kind: the type of its exception, or the rule whose promise was broken; place: the line
             of the user's code. is_early: a wait was over before the calm was.
    """

    kind: str
    place: str
    text: str
    is_early: bool = False

    def is_like(self, other: Failure | None) -> bool:
        """True for the same kind of failure."""
        return other is not None and (self.kind, self.place, self.is_early) == (
            other.kind,
            other.place,
            other.is_early,
        )

    def __str__(self) -> str:
        first = next(iter(self.text.splitlines()), "")
        return f"{self.kind} at {self.place}{': ' * bool(first)}{first}"


class Played(Value, kw_only=True):
    """A play that has ended.

    Shapes:  apps, partitions, broker_ids: what there was to disturb. done: the disturbances as they
             were, with the nodes that they met. report: pytest's, of a failure. call: how the test
             is called, for a test to paste.
    Units:   apps_ms: when its first app was started; body_ms: when its body ended; both since that
             began. cluster_ms: the clock of the cluster at the end.
    """

    play: Play
    failure: Failure | None
    apps: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    broker_ids: tuple[int, ...] = ()
    apps_ms: int = 0
    body_ms: int = 0
    cluster_ms: int = 0
    cluster_seed: int = 0
    trace_hash: str = ""
    requests: tuple[str, ...] = ()
    done: tuple[Disturbance, ...] = ()
    report: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The outcome as plain values."""
        done = [each.to_dict() for each in self.done]
        failure = None if self.failure is None else asdict(self.failure)
        return {**asdict(self), "play": self.play.to_dict(), "failure": failure, "done": done}

    @classmethod
    def of_dict(cls, value: dict[str, Any]) -> Played:
        """The outcome that ``to_dict`` has made plain."""
        failure = value["failure"]
        fields: dict[str, Any] = {
            name: tuple(held) if isinstance(held, list) else held for name, held in value.items()
        }
        fields["play"] = Play.of_dict(value["play"])
        fields["failure"] = None if failure is None else Failure(**failure)
        fields["done"] = tuple(map(Disturbance.of_dict, value["done"]))
        return cls(**fields)


Player = Callable[[Play], Played]


class Surroundings(Value, kw_only=True):
    """What the seeds of a test are drawn for, from the play of the test alone."""

    alone: Played
    words: str
    calm_ms: int
    apps: tuple[str, ...]  # those that may be disturbed

    @classmethod
    def of(cls, alone: Played, *, words: str | None, calm: Any, apps: str | None) -> Surroundings:
        """The wishes of the person who explores.

        Shapes:  words: of kinds of disturbances. apps: names; None: all.
        Errors:  UserError for a word, a duration or a name that there is not.
        """
        words = WORDS if words is None else words
        kinds_of(words)
        names = alone.apps if apps is None else tuple(apps.split())
        for name in names:
            if name not in alone.apps:
                started = instead(name, alone.apps, None if alone.apps else "it starts none")
                raise UserError(f"apps: the test starts no app {name}; {started}")
        return cls(alone=alone, words=words, calm_ms=read_duration(calm, "calm"), apps=names)

    def play(self, seed: int) -> Play:
        """The play of a seed."""
        alone = self.alone
        world = World(
            brokers=len(alone.broker_ids), controllers=1, log_dirs=1, victim=1, dynamic=False,
            apps=self.apps, partitions=alone.partitions, broker_ids=alone.broker_ids,
        )  # fmt: skip
        lasts_ms = min(alone.body_ms - alone.apps_ms, BEGIN_WITHIN_MS)
        drawn = disturbances(seed, world, kinds_of(self.words), alone.apps_ms, lasts_ms)
        return Play(seed=seed, disturbances=drawn, calm_ms=self.calm_ms)


# In the process of the test.


class Disturber:
    """Disturbs the cluster of a test while its body runs."""

    def __init__(self, mini_cluster: MiniCluster, cluster: RunningCluster, play: Play) -> None:
        self.mini_cluster, self.cluster, self.play = mini_cluster, cluster, play
        self.began_ms = cluster.now_ms
        self.body_ms = 0
        self.done: dict[int, Disturbance] = {}
        self._is_over = False
        open_programs(cluster).world.shuffles = play.shuffles
        if not play.latency:
            least_ms, _ = cluster.network.base_delay_ms
            cluster.network.base_delay_ms = least_ms, least_ms
        for each in play.disturbances:
            for place, (after_ms, _) in enumerate(each.steps):
                at_ms = self.began_ms + each.at_ms + after_ms
                cluster.rt.schedule(at_ms, self._perform, (each, place))

    @property
    def calm_ends_ms(self) -> int:
        """When everything has run for as long as it should, healed, by the cluster's clock."""
        begun = [each.ends_ms for each in self.play.disturbances if each.number in self.done]
        return max([self.began_ms + self.body_ms, *(self.began_ms + at for at in begun)]) + (
            self.play.calm_ms if self.play.disturbances else 0
        )

    @property
    def is_early(self) -> bool:
        """True until every disturbance, and the calm after it, is over."""
        ends = [each.ends_ms + self.play.calm_ms for each in self.play.disturbances]
        return self.cluster.now_ms - self.began_ms < max(ends, default=0)

    def _perform(self, which: tuple[Disturbance, int]) -> None:
        each, place = which
        if place == 0 and not self._is_over:
            self.done[each.number] = each
        if each.number not in self.done:
            return
        after_ms, step = each.steps[place]
        try:
            as_met = {name: self._met(value) for name, value in step.items()}
            arguments = {name: value for name, value in as_met.items() if name != "do"}
            getattr(self.mini_cluster, step["do"])(**arguments)
        except UserError as error:  # there is no such app or topic yet, or no leader now
            self.cluster.note(step["do"], [], "note", str(error))
            return
        steps = list(self.done[each.number].steps)
        steps[place] = after_ms, as_met
        self.done[each.number] = replace(each, steps=tuple(steps))

    def _met(self, value: Any) -> Any:
        """A role as the node that has it now, so that what is left out later changes nothing."""
        if not isinstance(value, str) or not value.startswith("leader("):
            return value
        [node] = self.cluster.ids_with_clients(value) or [None]
        return value if node is None else f"broker({node})"

    def end(self) -> None:
        """The body has ended: no disturbance begins any more."""
        self._is_over = True
        self.body_ms = self.cluster.now_ms - self.began_ms

    def calm(self) -> None:
        """Let everything that has begun end, and the cluster run in calm.

        Errors:  those of what the run broke, the test's own assertions apart.
        """
        left_ms = self.calm_ends_ms - self.cluster.now_ms
        if left_ms > 0:
            self.cluster.run_for(Milliseconds(left_ms))
        judge(self.cluster)

    def played(self, failure: Failure | None) -> Played:
        """The outcome, without pytest's report."""
        cluster, programs = self.cluster, self.cluster.programs
        assert programs is not None
        lists_requests = failure is not None or self.play.lists_requests
        of_body = {BODY, *programs.served}
        started = {p.name: p for p in programs.by_name.values() if p.name not in of_body}
        begins = [p.incarnations[0].started_ms for p in started.values()]
        partitions = [
            f"{topic.name}-{index}"
            for topic, index, _ in cluster.image.topics.partitions()
            if not topic.name.startswith(OWN_TOPICS)
        ]
        return Played(
            play=self.play,
            failure=failure,
            apps=tuple(started),
            partitions=tuple(partitions),
            broker_ids=cluster.broker_ids,
            apps_ms=max(0, min(begins, default=self.began_ms) - self.began_ms),
            body_ms=self.body_ms,
            cluster_ms=cluster.now_ms,
            cluster_seed=cluster.seed,
            trace_hash=cluster.trace_hash,
            requests=tuple(_requests(cluster)) if lists_requests else (),
            done=tuple(self.done[n] for n in sorted(self.done)),
        )


def judge(cluster: RunningCluster) -> None:
    """Judge a run whose test has passed, after the calm; each finding is a failure of the seed.

    This is the one place where promises that no assertion names become failures.

    Errors:  InvariantViolated with the rule that was broken, and whom it accuses.
    """
    cluster.check_clients()


def failure_of(error: BaseException, *, is_early: bool) -> Failure:
    """An exception as a failure that can be compared with others.

    Shapes:  is_early: disturbances, or the calm after them, were not over.
    """
    is_early = is_early and isinstance(error, WaitTimeout)
    if isinstance(error, InvariantViolated):
        rule = error.findings[0].rule
        return Failure(kind=rule, place="the end of the run", text=str(error))
    return Failure(
        kind=type(error).__name__, place=_place_of(error), text=str(error), is_early=is_early
    )


def _place_of(error: BaseException) -> str:
    """The innermost line of the user's code that an exception has passed, as file:line."""
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [(frame, line) for frame, line in frames if not _is_library(frame)] or frames
    if not own:
        return "an unknown place"
    frame, line = own[-1]
    return f"{os.path.relpath(frame.f_code.co_filename)}:{line}"


_STANDARD_LIBRARY = sysconfig.get_path("stdlib")
_INSTALLED = ("site-packages", "dist-packages")


def _is_library(frame: Any) -> bool:
    name, file = str(frame.f_globals.get("__name__")), frame.f_code.co_filename
    is_installed = any(folder in file for folder in _INSTALLED)
    is_library = is_installed or file.startswith((_STANDARD_LIBRARY, "<"))
    return is_library or name.startswith("minicluster.")


def _requests(cluster: RunningCluster) -> Iterator[str]:
    """The requests of programs, a line each, by which two plays of a seed are compared."""
    names = cluster.client_nodes.known
    assert cluster.programs is not None
    for row in sorted(cluster.recorder.table("rpc"), key=itemgetter("seq")):
        if row["src"] in cluster.programs.by_node:
            request = json.dumps(row["request"], default=str)
            at = f"{row['vt'] / 1_000:.3f}s"
            yield f"{at}  {names[row['src']]} to {row['dst']}: {row['api']} {request}"


# What a failure hangs on.


class Found(Value, kw_only=True):
    """A failure and what it hangs on.

    Shapes:  first: the play that failed. shortest: the one with the fewest disturbances, None where
             the seed does not repeat. differs: the first difference of two plays of the seed.
             without: what of chance may be left out; whatever is named there is not the cause.
    """

    first: Played
    shortest: Played | None = None
    differs: str | None = None
    replays: int = 0
    is_complete: bool = True
    without: tuple[str, ...] = field(default=())


def examine(
    first: Played,
    play: Player,
    elsewhere: Player,
    on_replay: Callable[[int, int], None] = lambda replays, fewest: None,
) -> Found:
    """Play a seed that has failed a second time, shrink it, and take chance out of it.

    Shapes:  elsewhere: plays in another process, where there are any; on_replay takes how many
             replays there were, and the fewest disturbances that fail so far.
    """
    assert first.failure is not None
    again = elsewhere(replace(first.play, lists_requests=True))
    if again.trace_hash != first.trace_hash or not first.failure.is_like(again.failure):
        return Found(first=first, differs=first_difference(first, again))
    failure = first.failure
    best = first
    replays = 0

    def still_fails(candidate: Sequence[Disturbance]) -> int | None:
        nonlocal best, replays
        replays += 1
        on_replay(replays, len(best.play.disturbances))
        played = play(replace(first.play, disturbances=tuple(candidate)))
        if not failure.is_like(played.failure):
            return None
        best = played
        return len(played.done)

    as_met = first.done  # roles as the nodes that had them
    shrunk: Shrunk[Disturbance] = shrink(
        as_met, still_fails, simpler=simpler, replays_max=REPLAYS_MAX
    )
    without: list[str] = []
    for names in (CHANCE, *((name,) for name in CHANCE)):
        calmer = replace(
            best.play, shuffles="shuffles" not in names, latency="latency" not in names
        )
        if failure.is_like(play(calmer).failure):
            without = list(names)
            break
    return Found(
        first=first,
        shortest=best,
        replays=shrunk.replays,
        is_complete=shrunk.complete,
        without=tuple(without),
    )


def first_difference(one: Played, other: Played) -> str:
    """Where two plays of a seed differ first: a request, else how they ended."""
    if one.requests and other.requests:
        for first, second in zip_longest(
            one.requests, other.requests, fillvalue="no more requests"
        ):
            if first != second:
                return f"{_until_difference(first, second)}\n{_until_difference(second, first)}"
    ends = [str(played.failure or "it passed") for played in (one, other)]
    if ends[0] != ends[1]:
        return f"no request differs; the first play: {ends[0]}; the second: {ends[1]}"
    return "no request of a program differs; the trace of the cluster does"


def _until_difference(line: str, other: str, most: int = 160) -> str:
    """A line, or the part of a long one where it differs from another."""
    place = next((n for n, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), most)
    if len(line) <= most or place < most // 2:
        return line[:most]
    head = line.index(" ", line.index(": ") + 2) if ": " in line else 0
    return f"{line[:head]} … {line[max(head, place - 30) : place + most - head]}"


# For people.


class TestItem(Value, kw_only=True):
    """A test as it is called: what a test to paste needs of it.

    Shapes:  shape: of its cluster, as markers give it. parameters: of ``parametrize``.
    """

    __test__ = False  # pytest: it is not a test

    nodeid: str
    name: str
    is_async: bool
    is_method: bool
    arguments: tuple[str, ...]
    shape: Mapping[str, Any]
    parameters: Mapping[str, Any]


def pasted(test: TestItem, played: Played) -> list[str]:
    """A play as a test of its own, which fails in the same way."""
    assert played.failure is not None
    seed = played.play.seed
    shape = {**test.shape, "seed": played.cluster_seed}
    given = ", ".join(f"{name}={value!r}" for name, value in shape.items())
    lines = [f"@pytest.mark.mini_cluster({given})"]
    for name, value in test.parameters.items():
        lines.append(f"@pytest.mark.parametrize({name!r}, [{value!r}])")
    arguments = list(dict.fromkeys(("mini_cluster", *test.arguments)))
    own = ["self"] if test.is_method else []
    name = f"{test.name}_seed_{seed}"
    lines.append(f"{'async ' * test.is_async}def {name}({', '.join([*own, *arguments])}):")
    lines.append(f'    """{played.failure.kind} at {played.failure.place}, as at seed {seed}."""')
    for each in played.done:
        for after_ms, step in each.steps:
            lines.append(f"    mini_cluster.call_later({_call(each.at_ms + after_ms, step)})")
    call = f"{'self.' * test.is_method}{test.name}({', '.join(test.arguments)})"
    lines.append(f"    {'await ' * test.is_async}{call}")
    return lines


_FIRST = ("node", "app", "src", "dst")  # arguments that go without their names


def _call(at_ms: int, step: Mapping[str, Any]) -> str:
    words = [repr(format_duration(at_ms)), f"mini_cluster.{step['do']}"]
    words += [repr(step[name]) for name in _FIRST if name in step]
    words += [f"{name}={value!r}" for name, value in step.items() if name not in ("do", *_FIRST)]
    return ", ".join(words).replace("'", '"')


def story(found: Found) -> list[str]:
    """The conditions of a failure, for people."""
    first = found.first
    if found.shortest is None:
        return [
            "it does not repeat: a second play of this seed differs first in",
            *(f"  {line}" for line in str(found.differs).splitlines()),
        ]
    best = found.shortest
    count = len(first.play.disturbances)
    how = f"shrunk from {count} to {len(best.done)} in {found.replays} replays"
    if not best.done:
        return [f"it fails without a disturbance, too ({how})", _of_chance(found)]
    lines = [f"disturbances since the test began ({how}):"]
    for each in best.done:
        for after_ms, step in each.steps:
            words = " ".join(f"{name}={value}" for name, value in step.items() if name != "do")
            at_s = (each.at_ms + after_ms) / 1_000
            lines.append(f"{at_s:10.3f}s  {step['do']} {words}")
    return [*lines, _of_chance(found)]


def early(around: Surroundings, played: Played) -> list[str]:
    """Why a failure shows nothing: the test has not waited for long enough."""
    ends_ms = max(each.ends_ms for each in played.play.disturbances)
    return [
        f"not judged: the wait was over at {played.body_ms / 1_000:g}s, the last disturbance at "
        f"{ends_ms / 1_000:g}s, and everything was to run on in calm for "
        f"{around.calm_ms / 1_000:g}s",
        f"let the test wait for longer: within={format_duration(_enough_ms(around))!r} costs "
        "nothing where the condition comes true before",
    ]


def _enough_ms(around: Surroundings) -> int:
    alone = around.alone
    latest_ms = min(alone.body_ms, alone.apps_ms + BEGIN_WITHIN_MS) + LASTING_MAX_MS
    return (latest_ms + around.calm_ms) // 60_000 * 60_000 + 60_000


def _of_chance(found: Found) -> str:
    names = {
        "shuffles": "the order and latency in programs",
        "latency": "the latency of packets",
    }
    left_out = [names[name] for name in found.without]
    needed = [names[name] for name in CHANCE if name not in found.without]
    if not needed:
        return "chance is not the cause: it fails as well with constant latency and no shuffling"
    if not left_out:
        return f"chance: it hangs on {' and on '.join(needed)}"
    return f"chance: it hangs on {needed[0]}, not on {left_out[0]}"
