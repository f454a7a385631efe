"""The cluster over time as a figure: active controller, each broker, the test's client, steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from minicluster.verify.reporting import svg
from minicluster.verify.reporting.drawing import axis, bands
from minicluster.verify.reporting.happenings import Happening
from minicluster.verify.reporting.scale import LEFT, WIDTH, Scale
from minicluster.verify.reporting.story import Story
from minicluster.verify.reporting.timeline import BrokerSpan, Timeline

LANE, GAP, TOP, BOTTOM = 18, 5, 26, 34
STEP_ROOM = 13  # between the numbers of two steps
TICKS_MAX = 600  # of the client's lane
_CLASSES = {
    "active": "active",
    "fenced": "fenced-lane",
    "shutting down": "shutdown-lane",
    "unregistered": "gone",
}


def cluster_figure(
    line: Timeline, story: Story, scale: Scale, rejected: Sequence[tuple[str, Happening]]
) -> svg.Figure:
    """All nodes of a run, what was done to them, and what controllers have rejected.

    Shapes:  rejected: with the ids by which the page lists them.
    """
    lanes = 1 + len(line.brokers) + bool(story.operations) + bool(rejected)
    bottom = TOP + lanes * (LANE + GAP)
    parts: list[Markup] = [*bands(scale, story.disturbances, TOP, bottom)]
    parts += _steps(story, scale, bottom)
    parts += _controllers(story, scale, TOP)
    y = TOP + LANE + GAP
    for broker, spans in sorted(line.brokers.items()):
        parts += _broker(broker, spans, story, scale, y)
        y += LANE + GAP
    if story.operations:
        parts += _client(story, scale, y)
        y += LANE + GAP
    if rejected:
        parts += _rejected(rejected, scale, y)
    parts += axis(scale, bottom + 8)
    return svg.Figure(
        title="Cluster",
        small="active controller, brokers, clients, rejections, steps",
        label="the cluster over time",
        width=WIDTH,
        height=bottom + BOTTOM,
        shapes=svg.joined(parts),
    )


def _name(text: str, y: float) -> Markup:
    return svg.label(name="name", x=LEFT - 8, y=y + 13, text=text)


def _span(
    scale: Scale, start_ms: int, end_ms: int, y: float, name: str, title: str, label: str = ""
) -> Iterator[Markup]:
    x = scale.at(start_ms)
    width = max(1.0, scale.at(end_ms) - x)
    yield svg.rect(name=name, x=x, y=y, width=width, height=LANE, title=title)
    if label and width > 7 * len(label):
        yield svg.label(name="in", x=x + 4, y=y + 13, text=label)


def _controllers(story: Story, scale: Scale, y: float) -> Iterator[Markup]:
    yield _name("controller", y)
    for index, leadership in enumerate(story.leaders):
        after = story.leaders[index + 1 : index + 2]
        end_ms = after[0].start_ms if after else scale.end_ms
        since = _at(scale, leadership.start_ms)
        title = f"controller {leadership.node} leads epoch {leadership.epoch} from {since}"
        name = "controller" if index % 2 == 0 else "controller other"
        label = f"{leadership.node} · epoch {leadership.epoch}"
        yield from _span(scale, leadership.start_ms, end_ms, y, name, title, label)


def _broker(
    broker: int, spans: Sequence[BrokerSpan], story: Story, scale: Scale, y: float
) -> Iterator[Markup]:
    yield _name(f"broker {broker}", y)
    for span in spans:
        start_ms, end_ms = scale.clock.of(span.start), scale.moment(span.end)
        where = f"from {_at(scale, start_ms)}, offset {span.start}"
        title = f"broker {broker} {span.state}, epoch {span.epoch}, {where}"
        yield from _span(scale, start_ms, end_ms, y, _CLASSES[span.state], title)
    for start_ms, ended_ms in story.down.get(broker, ()):
        end_ms = scale.end_ms if ended_ms is None else ended_ms
        title = f"broker {broker} is down from {_at(scale, start_ms)}"
        yield from _span(scale, start_ms, end_ms, y, "dead", title, "down")


def _client(story: Story, scale: Scale, y: float) -> Iterator[Markup]:
    """A tick for each record; a taller one for a record without an acknowledgement."""
    yield _name("client", y)
    operations = story.operations
    sparse = operations[:: 1 + len(operations) // TICKS_MAX]
    failed = [operation for operation in operations if operation.outcome != "ok"][:TICKS_MAX]
    for operation in [*sparse, *failed]:
        x = scale.at(operation.at_ms)
        height = 6 if operation.outcome == "ok" else LANE
        title = f"a record: {operation.outcome}, {_at(scale, operation.at_ms)}"
        yield svg.stroke(
            name=f"op {operation.outcome}",
            x1=x,
            x2=x,
            y1=y + LANE - height,
            y2=y + LANE,
            title=title,
        )


def _rejected(
    rejected: Sequence[tuple[str, Happening]], scale: Scale, y: float
) -> Iterator[Markup]:
    yield _name("rejected", y)
    for href, happening in rejected:
        x = scale.at(happening.at_ms)
        width = max(3.0, scale.at(happening.until_ms) - x)
        title = f"{_at(scale, happening.at_ms)}: {happening.text}\n{happening.more}"
        span = svg.rect(name="rejected", x=x, y=y + 4, width=width, height=LANE - 8)
        yield svg.group(name="rejection", title=title, href=href, shapes=(span,))


def _steps(story: Story, scale: Scale, bottom: float) -> Iterator[Markup]:
    room = 0.0
    for step in story.steps:
        if step.performed is None:
            continue
        x = scale.at(step.performed.at_ms)
        parts: list[Markup] = [svg.stroke(x1=x, x2=x, y1=TOP - 7, y2=bottom)]
        if x >= room:
            parts.append(svg.label(x=x, y=TOP - 10, text=str(step.number)))
            room = x + STEP_ROOM + 6 * (len(str(step.number)) - 1)
        yield svg.group(
            name="step failed" if step.performed.failed else "step",
            title=f"step {step.number} at {_at(scale, step.performed.at_ms)}: {step.text}",
            href=f"step-{step.number}",
            shapes=parts,
        )


def _at(scale: Scale, moment: int) -> str:
    return scale.clock.text(moment)
