"""A partition's history as inline SVG: one lane per replica, epochs below, findings above."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from minicluster.verify.reporting.timeline import BrokerSpan, PartitionLine, PartitionSpan, Timeline
from minicluster.verify.rules.model import Finding

WIDTH = 1000
LEFT = 64
LANE = 20
GAP = 3
TOP_WITH_MARKS, TOP = 26, 6
BOTTOM = 40
MAX_SPANS = 600

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
        '<span><i class="key recovering"></i>recovering</span>'
        '<span><i class="key mark"></i>finding</span>'
    )
    return f'{_PATTERNS}<p class="legend">{items}{extra}</p>'


def drawing(line: Timeline, partition: PartitionLine, found: Sequence[Finding]) -> str:
    """One partition, its brokers' lanes, its epochs and its findings."""
    brokers = partition.brokers
    top = TOP_WITH_MARKS if found else TOP
    height = top + len(brokers) * (LANE + GAP) + BOTTOM
    scale = _Scale(line.first, line.end)
    parts = [
        f'<figure class="line"><figcaption>{escape(partition.name)}'
        f"<small>{len(partition.spans)} state{'s' * (len(partition.spans) != 1)}</small>"
        f'</figcaption><svg viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="history of {escape(partition.name)}">'
    ]
    spans = list(_with_ends(partition, line.end))[-MAX_SPANS:]
    for row, broker in enumerate(brokers):
        y = top + row * (LANE + GAP)
        parts.append(f'<text class="name" x="{LEFT - 8}" y="{y + 14}">broker {broker}</text>')
        parts += [_cell(scale, y, broker, span, end) for span, end in spans]
        parts += _shades(scale, y, broker, line, partition)
    base = top + len(brokers) * (LANE + GAP)
    parts += _epochs(scale, base, spans)
    parts += _axis(scale, base + 22)
    parts += [_mark(scale, base, one) for one in found]
    parts.append("</svg></figure>")
    return "".join(parts)


class _Scale:
    """From offsets to pixels."""

    def __init__(self, first: int, end: int) -> None:
        self.first, self.end = first, max(end, first + 1)

    def x(self, offset: int) -> float:
        share = (offset - self.first) / (self.end - self.first)
        return LEFT + (WIDTH - LEFT - 4) * min(1.0, max(0.0, share))


def _with_ends(partition: PartitionLine, end: int) -> Iterator[tuple[PartitionSpan, int]]:
    last = partition.end if partition.end is not None else end
    for index, span in enumerate(partition.spans):
        following = partition.spans[index + 1 :][:1]
        yield span, following[0].start if following else last


def _rect(scale: _Scale, start: int, end: int, y: float, height: float, name: str) -> str:
    x = scale.x(start)
    width = max(0.8, scale.x(end) - x)
    return f'<rect class="{name}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}"'


def _cell(scale: _Scale, y: float, broker: int, span: PartitionSpan, end: int) -> str:
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
        f"offsets {span.start}–{end - 1}: broker {broker} {what}\n"
        f"ISR {list(span.isr)}, leader {span.leader}, leader epoch {span.leader_epoch}, "
        f"partition epoch {span.partition_epoch}{', recovering' if span.recovering else ''}"
    )
    cell = f"{_rect(scale, span.start, end, y, LANE, kind)}><title>{escape(title)}</title></rect>"
    if span.recovering and broker == span.leader:
        cell += _rect(scale, span.start, end, y + LANE - 4, 4, "recovering") + "/>"
    return cell


def _shades(
    scale: _Scale, y: float, broker: int, line: Timeline, partition: PartitionLine
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


def _epochs(scale: _Scale, y: float, spans: Sequence[tuple[PartitionSpan, int]]) -> Iterator[str]:
    """Ticks for partition epochs, numbers where the leader epoch moves and there is room."""
    yield f'<text class="name" x="{LEFT - 8}" y="{y + 14}">epochs</text>'
    last_epoch, room = None, -1.0
    for span, _ in spans:
        x = scale.x(span.start)
        if span.leader_epoch != last_epoch:
            yield f'<line class="epoch" x1="{x:.1f}" x2="{x:.1f}" y1="{y + 1}" y2="{y + 9}"/>'
            if x > room:
                yield f'<text class="epoch" x="{x + 2:.1f}" y="{y + 14}">{span.leader_epoch}</text>'
                room = x + 10 + 7 * len(str(span.leader_epoch))
            last_epoch = span.leader_epoch
        else:
            yield f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{y + 1}" y2="{y + 5}"/>'


def _axis(scale: _Scale, y: float) -> Iterator[str]:
    yield f'<line class="axis" x1="{LEFT}" x2="{WIDTH - 4}" y1="{y}" y2="{y}"/>'
    step = _step(scale.end - scale.first)
    for offset in range(-(-scale.first // step) * step, scale.end, step):
        x = scale.x(offset)
        yield f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 3}"/>'
        if x < WIDTH - 24:
            yield f'<text class="axis" x="{x:.1f}" y="{y + 14}">{offset}</text>'


def _step(length: int) -> int:
    """A round number of offsets that gives about ten ticks."""
    step = 1
    while length / step > 12:
        step = step * 5 if str(step)[0] == "2" else step * 2
        if str(step).startswith("4"):
            step = step // 4 * 5
    return max(1, step)


def _mark(scale: _Scale, base: float, finding: Finding) -> str:
    x = scale.x(finding.offset)
    title = escape(f"{finding.rule} at offset {finding.offset}: {finding.message}")
    return (
        f'<g class="mark"><title>{title}</title>'
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP_WITH_MARKS - 8}" y2="{base}"/>'
        f'<path d="M{x - 5:.1f} {TOP_WITH_MARKS - 16} h10 l-5 8 z"/>'
        f'<text x="{min(x + 8, WIDTH - 30):.1f}" y="{TOP_WITH_MARKS - 9}">{finding.rule}</text></g>'
    )
