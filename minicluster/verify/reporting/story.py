"""The story of a run beside its log: steps, disturbances, who led, who was down, what clients saw.

It is read from ``run.json`` and the trace; a plain log has none but the controllers' epochs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc
from msgspec import Struct, field

from minicluster.trace import EXIT, is_halt, shown_fault
from minicluster.values import Value
from minicluster.verify.evidence.run import Run
from minicluster.verify.evidence.run_header import PerformedStep, RunHeader
from minicluster.verify.evidence.trace_tables import trace_rows
from minicluster.verify.quorum.controller_logs import leader_of
from minicluster.verify.reporting.programs import Moment, moments_of_programs
from minicluster.verify.reporting.rejections import Rejection, rejections_of

NODES_SHOWN = 6
OF_LINKS = frozenset({"cut", "delay", "loss", "duplicate", "reorder", "hold"})
# What ends what another action began.
ENDS: Mapping[str, tuple[str, ...]] = {
    "resume": ("pause",),
    "restart": ("kill", "controlled_shutdown", "wipe", "bounce", "fail_over", EXIT),
}


class Request(Value, kw_only=True):
    """A request of the trace, with its readable properties."""

    id: int
    api: str
    src: int
    dst: int
    sent_ms: int
    handled_ms: int | None
    completed_ms: int | None
    error: str | None

    def __str__(self) -> str:
        sender = "the test's client" if self.src == -1 else f"node {self.src}"
        return f"{self.api} of {sender} to node {self.dst}, sent at {self.sent_ms / 1000:g}s"


class Step(Value, kw_only=True):
    """A step of the scenario: its text, and how it went if it was performed."""

    number: int
    text: str
    performed: PerformedStep | None


class Disturbance(Struct, kw_only=True):
    """A disturbance from its beginning to its end."""

    action: str
    targets: str
    nodes: frozenset[int]
    start_ms: int
    end_ms: int | None = None
    step: int | None = None
    detail: str = ""

    @property
    def text(self) -> str:
        """The disturbance in one line."""
        of_step = f" (step {self.step})" if self.step is not None else ""
        return shown_fault(self.action, self.targets, self.detail) + of_step


class Leadership(Value):
    """A controller that leads the quorum from a moment on."""

    start_ms: int
    node: int
    epoch: int


class Operation(Value):
    """A record that the test's client sent: when it was done, and how."""

    at_ms: int
    outcome: str  # ok fail info


class Story(Struct, kw_only=True):
    """All that happened in a run, but for the log itself.

    Shapes:  hits: (ms, text) of planted faults and answers; down: node -> (from, to) in ms;
             written: offset of a record -> the id of the request that wrote it.
    """

    steps: list[Step] = field(default_factory=list)
    disturbances: list[Disturbance] = field(default_factory=list)
    hits: list[tuple[int, str]] = field(default_factory=list)
    leaders: list[Leadership] = field(default_factory=list)
    down: dict[int, list[tuple[int, int | None]]] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    rejections: list[Rejection] = field(default_factory=list)
    requests: dict[int, Request] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    end_ms: int | None = None
    clients: Mapping[int, str] = field(default_factory=dict)
    programs: list[Moment] = field(default_factory=list)


def story_of(run: Run) -> Story:
    """Read the story of a run."""
    header = run.header or RunHeader()
    story = Story(steps=_steps(header), end_ms=header.ended_at_ms, clients=header.clients)
    _leaders(run, story)
    if run.header is not None:
        _disturbances(story, trace_rows(run, "fault", "seq vt step action targets phase detail"))
        _requests(story, run)
        story.programs = _programs(run, header)
        story.rejections = rejections_of(run)
        story.operations = [
            Operation(row["vt"], row["type"]) for row in trace_rows(run, "history", "seq vt type")
        ]
    return story


def _programs(run: Run, header: RunHeader) -> list[Moment]:
    if not header.apps:
        return []
    nodes = [app.node for app in header.apps]
    return moments_of_programs(
        header.apps,
        trace_rows(run, "program_log", "seq vt program level logger text"),
        trace_rows(
            run, "client_record", "seq vt rpc group_id generation topic topic_id part",
            pc.field("f") == "own",
        ),
        trace_rows(
            run, "rpc", "seq id api src dst sent_ms error", pc.field("src").isin(nodes)
        ),
    )  # fmt: skip


def _steps(header: RunHeader) -> list[Step]:
    written = (header.scenario or {}).get("steps")
    performed = {step.number: step for step in header.steps}
    return [
        Step(number=number, text=step_text(value), performed=performed.get(number))
        for number, value in enumerate(written if isinstance(written, list) else (), 1)
    ]


def step_text(value: Any) -> str:
    """A step as a scenario file has it, in one line."""
    if not isinstance(value, Mapping):
        return str(value)
    words = []
    for name, item in value.items():
        shown = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
        of_action = "do" in value and name not in ("at", "after")
        words.append(str(shown) if name == "do" else f"{name}{'=' if of_action else ' '}{shown}")
    return " ".join(words)


def _leaders(run: Run, story: Story) -> None:
    """The active controllers, from the log's own control records or the controller epochs."""
    for row in run.znode_rows("znode_controllers"):
        if row["kind"] == "Epoch":
            story.leaders.append(Leadership(row["ms"], row["broker"], row["epoch"]))
    for batch in run.committed:
        if (leader := leader_of(batch)) is not None:
            story.leaders.append(Leadership(batch.max_timestamp, leader, batch.leader_epoch))


def _requests(story: Story, run: Run) -> None:
    columns = "seq id api src dst sent_ms handled_ms completed_ms error records_written"
    # Of an hour's requests all but a few are these; as Python's objects they would take gigabytes.
    rare = ~pc.field("api").isin(["Fetch", "BrokerHeartbeat"])
    writes = pc.list_value_length(pc.field("records_written")) > 0
    for row in trace_rows(run, "rpc", columns, rare | writes):
        written = row["records_written"] or ()
        for offset in written:
            story.written[offset] = row["id"]
        story.requests[row["id"]] = Request(
            id=row["id"], api=row["api"], src=row["src"], dst=row["dst"],
            sent_ms=row["sent_ms"] or 0, handled_ms=row["handled_ms"],
            completed_ms=row["completed_ms"], error=row["error"],
        )  # fmt: skip


def _disturbances(story: Story, rows: Sequence[Mapping[str, Any]]) -> None:
    """Pair each beginning with its end."""
    open_pairs: dict[tuple[int, int], list[Disturbance]] = {}
    open_nodes: dict[tuple[str, int], Disturbance] = {}
    left: dict[int, int] = {}  # disturbance of links -> how many of its links are left
    for row in rows:
        action, phase, at_ms = row["action"], row["phase"], row["vt"]
        targets = _targets(row["targets"])
        if phase == "hit":
            # A planted fault has no detail; an answer on demand has the request that it acted on.
            answer = shown_fault(action, "", row["detail"])
            is_planted = row["detail"] is None
            story.hits.append((at_ms, f"planted fault {action} acts" if is_planted else answer))
        elif phase == "start" or is_halt(row):
            disturbance = Disturbance(
                action=action, targets=_shown(targets, story.clients),
                nodes=frozenset(_nodes(targets)), start_ms=at_ms, step=row["step"],
                detail=row["detail"] or "",
            )  # fmt: skip
            _begin(story, disturbance, targets, open_pairs, open_nodes, left)
        elif phase == "stop":
            for pair in (pair for pair in targets if isinstance(pair, list)):
                for disturbance in open_pairs.pop((pair[0], pair[-1]), []):
                    left[id(disturbance)] -= 1
                    if left[id(disturbance)] == 0:
                        disturbance.end_ms = at_ms
            for node in _nodes(targets):
                for begun in (action, *ENDS.get(action, ())):
                    if (opened := open_nodes.pop((begun, node), None)) is not None:
                        opened.end_ms = at_ms


def _begin(
    story: Story,
    disturbance: Disturbance,
    targets: Sequence[Any],
    open_pairs: dict[tuple[int, int], list[Disturbance]],
    open_nodes: dict[tuple[str, int], Disturbance],
    left: dict[int, int],
) -> None:
    if disturbance.action == "restart":  # it ends what killed the node, and disturbs nothing itself
        for node in disturbance.nodes:
            for begun in ENDS["restart"]:
                if (opened := open_nodes.pop((begun, node), None)) is not None:
                    opened.end_ms = disturbance.start_ms
            if (spans := story.down.get(node)) and spans[-1][1] is None:
                spans[-1] = (spans[-1][0], disturbance.start_ms)
        return
    story.disturbances.append(disturbance)
    pairs = [(pair[0], pair[-1]) for pair in targets if isinstance(pair, list) and pair]
    left[id(disturbance)] = len(pairs)
    for pair in pairs:
        open_pairs.setdefault(pair, []).append(disturbance)
    if pairs:
        return
    for node in disturbance.nodes:
        open_nodes[disturbance.action, node] = disturbance
        if disturbance.action in ENDS["restart"]:
            spans = story.down.setdefault(node, [])
            if not spans or spans[-1][1] is not None:
                spans.append((disturbance.start_ms, None))


def _targets(text: str | None) -> list[Any]:
    try:
        targets = json.loads(text or "[]")
    except ValueError:
        return []
    return targets if isinstance(targets, list) else [targets]


def _nodes(targets: Sequence[Any]) -> Iterator[int]:
    for target in targets:
        if isinstance(target, list):
            yield from _nodes(target)
        elif isinstance(target, int):
            yield target


def _shown(targets: Sequence[Any], clients: Mapping[int, str]) -> str:
    """Nodes and links; a client by its name."""
    shown = [
        "→".join(clients.get(node, str(node)) for node in target)
        if isinstance(target, list)
        else clients.get(target, str(target))
        for target in targets[:NODES_SHOWN]
    ]
    return " ".join([*shown, *_more(targets)])


def listed_nodes(nodes: Sequence[Any], clients: Mapping[int, str]) -> str:
    """The nodes that a selector has found, or groups of them; a client by its name."""
    shown = [
        f"[{listed_nodes(node, clients)}]"
        if isinstance(node, list)
        else clients.get(node, str(node))
        for node in nodes[:NODES_SHOWN]
    ]
    return ", ".join([*shown, *_more(nodes)]) or "nobody"


def _more(nodes: Sequence[Any]) -> list[str]:
    return [f"and {len(nodes) - NODES_SHOWN} more"] if len(nodes) > NODES_SHOWN else []
