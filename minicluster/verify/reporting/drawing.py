"""A partition's history as inline SVG over time: a lane for each replica, epochs, findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from minicluster.errors import counted
from minicluster.verify.model import Finding
from minicluster.verify.reporting.scale import LEFT, RIGHT, WIDTH, Scale
from minicluster.verify.reporting.story import OF_LINKS, Disturbance
from minicluster.verify.reporting.timeline import BrokerSpan, PartitionLine, PartitionSpan, Timeline

LANE = 20
GAP = 3
TOP_WITH_MARKS, TOP = 26, 6
BOTTOM = 40
MAX_SPANS = 600
BANDS_MAX = 200

_STATES = (
    ("leader", "leads"),
    ("isr", "in the ISR"),
    ("elr", "eligible leader"),
    ("out", "replica, out of sync"),
    ("none", "no replica"),
)
_HATCH = (
    '<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse">'
    '<path d="M-1 7 L7 -1"/></pattern>'
)
_PATTERNS = (
    f'<svg class="patterns" aria-hidden="true"><defs>{_HATCH.format(name="fenced")}'
    f"{_HATCH.format(name='shutdown')}</defs></svg>"
)


def legend() -> str:
    """The meaning of each colour."""
    items = "".join(f'<span><i class="key {key}"></i>{text}</span>' for key, text in _STATES)
    extra = (
        '<span><i class="key fenced"></i>broker fenced or gone</span>'
        '<span><i class="key shutdown"></i>shutting down</span>'
        '<span><i class="key dead"></i>down</span>'
        '<span><i class="key recovering"></i>recovering</span>'
        '<span><i class="key mark"></i>finding</span>'
        '<span><i class="key band net"></i>network disturbed</span>'
        '<span><i class="key band act"></i>other disturbance</span>'
    )
    return f'{_PATTERNS}<p class="legend">{items}{extra}</p>'


def drawing(
    line: Timeline,
    partition: PartitionLine,
    found: Sequence[tuple[str, int, Finding]],
    scale: Scale,
    disturbances: Sequence[Disturbance],
) -> str:
    """One partition, its brokers' lanes, its epochs and its findings.

    Shapes:  found: findings with the ids by which the page links to them, and their moments.
    """
    brokers = partition.brokers
    top = TOP_WITH_MARKS if found else TOP
    height = top + len(brokers) * (LANE + GAP) + BOTTOM
    parts = [
        f'<figure class="line"><figcaption>{escape(partition.name)}'
        f"<small>{counted(len(partition.spans), 'state')}</small>"
        f'</figcaption><svg viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="history of {escape(partition.name)}">'
    ]
    parts += bands(scale, disturbances, top, height - BOTTOM)
    spans = list(_with_ends(partition, line.end))[-MAX_SPANS:]
    for row, broker in enumerate(brokers):
        y = top + row * (LANE + GAP)
        parts.append(f'<text class="name" x="{LEFT - 8}" y="{y + 14}">broker {broker}</text>')
        parts += [_cell(scale, y, broker, span, end) for span, end in spans]
        parts += _shades(scale, y, broker, line, partition)
    base = top + len(brokers) * (LANE + GAP)
    parts += _epochs(scale, base, spans)
    parts += axis(scale, base + 22)
    parts += [_mark(scale, base, anchor, moment, one) for anchor, moment, one in found]
    parts.append("</svg></figure>")
    return "".join(parts)


def _with_ends(partition: PartitionLine, end: int) -> Iterator[tuple[PartitionSpan, int]]:
    last = partition.end if partition.end is not None else end
    for index, span in enumerate(partition.spans):
        following = partition.spans[index + 1 :][:1]
        yield span, following[0].start if following else last


def _rect(scale: Scale, start: int, end: int, y: float, height: float, name: str) -> str:
    x = scale.of(start)
    width = max(0.8, scale.of(end) - x)
    return f'<rect class="{name}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}"'


def _cell(scale: Scale, y: float, broker: int, span: PartitionSpan, end: int) -> str:
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
        f"from {scale.clock.text(scale.clock.of(span.start))}, offsets {span.start}–{end - 1}: "
        f"broker {broker} {what}\n"
        f"ISR {list(span.isr)}, leader {span.leader}, leader epoch {span.leader_epoch}, "
        f"partition epoch {span.partition_epoch}{', recovering' if span.recovering else ''}"
    )
    cell = f"{_rect(scale, span.start, end, y, LANE, kind)}><title>{escape(title)}</title></rect>"
    if span.recovering and broker == span.leader:
        cell += _rect(scale, span.start, end, y + LANE - 4, 4, "recovering") + "/>"
    return cell


def _shades(
    scale: Scale, y: float, broker: int, line: Timeline, partition: PartitionLine
) -> Iterator[str]:
    """Where the broker was not active, within the partition's life."""
    first = partition.spans[0].start
    last = partition.end if partition.end is not None else line.end
    spans: list[BrokerSpan] = line.brokers.get(broker, [])
    for index, span in enumerate(spans):
        end = spans[index + 1].start if index + 1 < len(spans) else line.end
        start, end = max(span.start, first), min(end, last)
        if span.state == "active" or start >= end:
            continue
        name = "shutdown" if span.state == "shutting down" else "fenced"
        title = f"offsets {start}–{end - 1}: broker {broker} {span.state}, epoch {span.epoch}"
        height = LANE if name == "fenced" else LANE / 2
        yield f"{_rect(scale, start, end, y, height, name)}><title>{title}</title></rect>"


def _epochs(scale: Scale, y: float, spans: Sequence[tuple[PartitionSpan, int]]) -> Iterator[str]:
    """Ticks for partition epochs, numbers where the leader epoch moves and there is room."""
    yield f'<text class="name" x="{LEFT - 8}" y="{y + 14}">epochs</text>'
    last_epoch, room = None, -1.0
    for span, _ in spans:
        x = scale.of(span.start)
        if span.leader_epoch != last_epoch:
            yield f'<line class="epoch" x1="{x:.1f}" x2="{x:.1f}" y1="{y + 1}" y2="{y + 9}"/>'
            if x > room:
                yield f'<text class="epoch" x="{x + 2:.1f}" y="{y + 14}">{span.leader_epoch}</text>'
                room = x + 10 + 7 * len(str(span.leader_epoch))
            last_epoch = span.leader_epoch
        else:
            yield f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{y + 1}" y2="{y + 5}"/>'


def axis(scale: Scale, y: float) -> Iterator[str]:
    """The moments below a figure, and where idle time is shortened."""
    yield f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
    for x, text in scale.ticks():
        yield f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 3}"/>'
        yield f'<text class="axis" x="{x:.1f}" y="{y + 14}">{escape(text)}</text>'
    for start, end in scale.breaks:
        x = (scale.at(start) + scale.at(end)) / 2
        idle = (
            f"{(end - start) / 1000:g}s" if scale.clock.is_timed else counted(end - start, "offset")
        )
        yield (
            f'<g class="break"><title>{idle} in which nothing changed, shortened</title>'
            f'<path d="M{x - 3:.1f} {y + 4} l3 -8 M{x:.1f} {y + 4} l3 -8"/></g>'
        )


def bands(
    scale: Scale, disturbances: Sequence[Disturbance], top: float, bottom: float
) -> Iterator[str]:
    """The disturbances, behind the lanes of a figure."""
    for one in disturbances[:BANDS_MAX]:
        end_ms = scale.end_ms if one.end_ms is None else one.end_ms
        x = scale.at(one.start_ms)
        width = max(1.5, scale.at(end_ms) - x)
        until = "the end" if one.end_ms is None else scale.clock.text(one.end_ms)
        title = escape(f"{one.text}\n{scale.clock.text(one.start_ms)} to {until}")
        kind = "net" if one.action in OF_LINKS else "act"
        yield (
            f'<rect class="band {kind}" x="{x:.1f}" y="{top - 4}" width="{width:.1f}" '
            f'height="{bottom - top + 6:.0f}"><title>{title}</title></rect>'
        )


def _mark(scale: Scale, base: float, anchor: str, moment: int, finding: Finding) -> str:
    x = scale.at(moment)
    title = escape(f"{finding.rule}, {scale.clock.text(moment)}: {finding.message}")
    return (
        f'<a href="#{anchor}"><g class="mark"><title>{title}</title>'
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP_WITH_MARKS - 8}" y2="{base}"/>'
        f'<path d="M{x - 5:.1f} {TOP_WITH_MARKS - 16} h10 l-5 8 z"/>'
        f'<text x="{min(x + 8, WIDTH - 30):.1f}" y="{TOP_WITH_MARKS - 9}">{finding.rule}</text>'
        "</g></a>"
    )
