"""A partition's history as a figure over time: a lane for each replica, epochs, findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from minicluster.errors import counted
from minicluster.verify.model import Finding
from minicluster.verify.reporting import svg
from minicluster.verify.reporting.scale import LEFT, RIGHT, WIDTH, Scale
from minicluster.verify.reporting.story import OF_LINKS, Disturbance
from minicluster.verify.reporting.timeline import PartitionLine, PartitionSpan, Timeline

LANE = 20
GAP = 3
TOP_WITH_MARKS, TOP = 26, 6
BOTTOM = 40
MAX_SPANS = 600
BANDS_MAX = 200

LEGEND = (
    ("leader", "leads"),
    ("isr", "in the ISR"),
    ("elr", "eligible leader"),
    ("out", "replica, out of sync"),
    ("none", "no replica"),
    ("active", "broker active"),
    ("fenced", "broker fenced or gone"),
    ("shutdown", "shutting down"),
    ("dead", "down"),
    ("recovering", "recovering"),
    ("mark", "finding"),
    ("rejected", "a controller rejects"),
    ("band net", "network disturbed"),
    ("band act", "other disturbance"),
)
"""The meaning of each colour, by its class."""


def drawing(
    line: Timeline,
    partition: PartitionLine,
    marked: Sequence[tuple[str, int, Finding]],
    scale: Scale,
    disturbances: Sequence[Disturbance],
    small: str,
) -> svg.Figure:
    """One partition, its brokers' lanes, its epochs and its findings.

    Shapes:  marked: findings with the ids by which the page links to them, and their moments;
             small: what is said beside the name.
    """
    brokers = partition.brokers
    top = TOP_WITH_MARKS if marked else TOP
    height = top + len(brokers) * (LANE + GAP) + BOTTOM
    parts: list[Markup] = [*bands(scale, disturbances, top, height - BOTTOM)]
    spans = partition.spans[-MAX_SPANS:]
    for row, broker in enumerate(brokers):
        y = top + row * (LANE + GAP)
        parts.append(svg.label(name="name", x=LEFT - 8, y=y + 14, text=f"broker {broker}"))
        for span in spans:
            parts += _cell(scale, y, broker, span)
        parts += _shades(scale, y, broker, line, partition)
    base = top + len(brokers) * (LANE + GAP)
    parts += _epochs(scale, base, spans)
    parts += axis(scale, base + 22)
    room = -1.0
    for anchor, moment, finding in sorted(marked, key=lambda mark: mark[1]):
        x = scale.at(moment)
        parts.append(_mark(scale, base, anchor, moment, finding, is_labelled=x > room))
        room = max(room, x + 10 + 8 * len(finding.rule)) if x > room else room
    return svg.Figure(
        title=partition.name,
        small=small,
        label=f"history of {partition.name}",
        width=WIDTH,
        height=height,
        shapes=svg.joined(parts),
    )


def _rect(
    scale: Scale, start: int, end: int, y: float, height: float, name: str, title: str = ""
) -> Markup:
    x = scale.of(start)
    width = max(0.8, scale.of(end) - x)
    return svg.rect(name=name, x=x, y=y, width=width, height=height, title=title)


def _cell(scale: Scale, y: float, broker: int, span: PartitionSpan) -> Iterator[Markup]:
    if broker not in span.replicas:
        kind, what = "none", "no replica"
    elif broker == span.leader:
        kind, what = "leader", "leads"
    elif broker in span.isr:
        kind, what = "isr", "in the ISR"
    elif broker in span.elr:
        kind, what = "elr", "eligible leader"
    else:
        kind, what = "out", "out of sync"
    title = (
        f"from {scale.clock.text(scale.clock.of(span.start))}, "
        f"offsets {span.start}–{span.end - 1}: broker {broker} {what}\n"
        f"ISR {list(span.isr)}, leader {span.leader}, leader epoch {span.leader_epoch}, "
        f"partition epoch {span.partition_epoch}{', recovering' if span.recovering else ''}"
    )
    yield _rect(scale, span.start, span.end, y, LANE, kind, title)
    if span.recovering and broker == span.leader:
        yield _rect(scale, span.start, span.end, y + LANE - 4, 4, "recovering")


def _shades(
    scale: Scale, y: float, broker: int, line: Timeline, partition: PartitionLine
) -> Iterator[Markup]:
    """Where the broker was not active, within the partition's life."""
    for span in line.brokers.get(broker, []):
        start = max(span.start, partition.spans[0].start)
        end = min(span.end, partition.spans[-1].end)
        if span.state == "active" or start >= end:
            continue
        name = "shutdown" if span.state == "shutting down" else "fenced"
        title = f"offsets {start}–{end - 1}: broker {broker} {span.state}, epoch {span.epoch}"
        height = LANE if name == "fenced" else LANE / 2
        yield _rect(scale, start, end, y, height, name, title)


def _epochs(scale: Scale, y: float, spans: Sequence[PartitionSpan]) -> Iterator[Markup]:
    """Ticks for partition epochs, numbers where the leader epoch moves and there is room."""
    yield svg.label(name="name", x=LEFT - 8, y=y + 14, text="epochs")
    last_epoch, room = None, -1.0
    for span in spans:
        x = scale.of(span.start)
        if span.leader_epoch != last_epoch:
            yield svg.stroke(name="epoch", x1=x, x2=x, y1=y + 1, y2=y + 9)
            if x > room:
                yield svg.label(name="epoch", x=x + 2, y=y + 14, text=str(span.leader_epoch))
                room = x + 10 + 7 * len(str(span.leader_epoch))
            last_epoch = span.leader_epoch
        else:
            title = f"partition epoch {span.partition_epoch}"
            yield svg.stroke(name="tick", x1=x, x2=x, y1=y + 1, y2=y + 5, title=title)


def axis(scale: Scale, y: float) -> Iterator[Markup]:
    """The moments below a figure, and where idle time is shortened."""
    yield svg.stroke(name="axis", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y)
    for x, text in scale.ticks():
        yield svg.stroke(name="axis", x1=x, x2=x, y1=y, y2=y + 3)
        yield svg.label(name="axis", x=x, y=y + 14, text=text)
    for start, end in scale.breaks:
        x = (scale.at(start) + scale.at(end)) / 2
        idle = (
            f"{(end - start) / 1000:g}s" if scale.clock.is_timed else counted(end - start, "offset")
        )
        cut = svg.path(f"M{x - 3:.1f} {y + 4} l3 -8 M{x:.1f} {y + 4} l3 -8")
        title = f"{idle} in which nothing changed, shortened"
        yield svg.group(name="break", title=title, shapes=(cut,))


def bands(
    scale: Scale, disturbances: Sequence[Disturbance], top: float, bottom: float
) -> Iterator[Markup]:
    """The disturbances, behind the lanes of a figure."""
    for disturbance in disturbances[:BANDS_MAX]:
        end_ms = scale.end_ms if disturbance.end_ms is None else disturbance.end_ms
        x = scale.at(disturbance.start_ms)
        until = "the end" if disturbance.end_ms is None else scale.clock.text(disturbance.end_ms)
        yield svg.rect(
            name=f"band {'net' if disturbance.action in OF_LINKS else 'act'}",
            x=x,
            y=top - 4,
            width=max(1.5, scale.at(end_ms) - x),
            height=bottom - top + 6,
            title=f"{disturbance.text}\n{scale.clock.text(disturbance.start_ms)} to {until}",
        )


def _mark(
    scale: Scale, base: float, anchor: str, moment: int, finding: Finding, *, is_labelled: bool
) -> Markup:
    x = scale.at(moment)
    label = svg.label(x=min(x + 8, WIDTH - 30), y=TOP_WITH_MARKS - 9, text=finding.rule)
    return svg.group(
        name="mark",
        title=f"{finding.rule}, {scale.clock.text(moment)}: {finding.message}",
        href=anchor,
        shapes=(
            svg.stroke(x1=x, x2=x, y1=TOP_WITH_MARKS - 8, y2=base),
            svg.path(f"M{x - 5:.1f} {TOP_WITH_MARKS - 16} h10 l-5 8 z"),
            *([label] if is_labelled else []),
        ),
    )
