"""A what-if as one HTML page: no script, no font, no network; light, dark and printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.resources import files

from minicluster.errors import counted
from minicluster.verify.what_if.outcome import KINDS, NAMES, Stage, StageOfAll, TopicOutcome, WhatIf
from minicluster.verify.what_if.text import cell, every_partition
from minicluster.version import VERSION

WIDTH, HEIGHT, LEFT, BOTTOM = 1000, 150, 64, 22
TOPICS_MAX = 200
POINTS_MAX = 2_000
_STYLE = """
.what h2 { margin-bottom: 4px; } .what .line { padding: 12px 14px; margin: 10px 0; }
.what svg { width: 100%; height: auto; display: block; }
.what svg text { font-size: 12px; fill: var(--dim); }
.what .no-leader { fill: var(--bad); background: var(--bad); }
.what .under-min-isr { fill: var(--recovering); background: var(--recovering); }
.what .at-risk { fill: var(--isr); background: var(--isr); }
.what .axis { stroke: var(--line); stroke-width: 1; }
.what td.bad { color: var(--bad); font-weight: 600; }
.what .all td { font-weight: 600; }
"""


def page(found: WhatIf) -> str:
    """The whole page."""
    css = files("minicluster.verify.reporting").joinpath("page.css").read_text(encoding="utf-8")
    stages = found.stages()
    made = f"minicluster {VERSION}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    body = [
        _banner(found, stages),
        *(_stage(number, stage) for number, stage in enumerate(stages)),
        f"<footer>{made}</footer>",
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>What if – {escape(found.log)}</title><style>{css}{_STYLE}</style></head>"
        f'<body><main class="what">{"".join(body)}</main></body></html>\n'
    )


def _banner(found: WhatIf, stages: Sequence[StageOfAll]) -> str:
    played = stages[1:]
    worst = [max((stage.all.most[n] for stage in played), default=0) for n in range(3)]
    state = "invalid" if worst[0] else "unknown" if worst[1] else "valid"
    tallies = "".join(
        f'<span class="tally"><b>{count:,}</b> {kind} at one time</span>'
        for count, kind in zip(worst, KINDS, strict=True)
    )
    notes = list(found.notes)
    if len(found.seeds) > 1:
        first, last = found.seeds[0].seed, found.seeds[-1].seed
        notes.append(f"{len(found.seeds)} seeds, {first} to {last}: of each number the worst")
    notes += [f"seed {one.seed}: {one.failure.text}" for one in found.seeds if one.failure]
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    repeat = f"<p>again: <code>{escape(found.repeat)}</code></p>" if found.repeat else ""
    return (
        f'<header class="banner {state}"><h1>What if</h1><p>{escape("; then ".join(found.steps))}'
        f'</p><p class="dim">{escape(found.log)}: {escape(found.description)}</p>'
        f'<div class="tallies">{tallies}</div><ul class="reasons">{listed}</ul>{repeat}</header>'
    )


def _stage(number: int, stage: StageOfAll) -> str:
    heading = f"{number}. {stage.text}" if number else "Before the scenario"
    seed = f'<p class="dim">drawn: seed {stage.worst_seed}, the worst</p>' * (stage.seeds > 1)
    if not number and any(stage.all.at_end):
        counts = ", ".join(f"{n:,} {kind}" for n, kind in zip(stage.all.at_end, KINDS, strict=True))
        return f"<h2>{heading}</h2><p>{counts}</p>{_left(stage.worst)}"
    if not number or not stage.all.is_touched:
        partitions = every_partition(stage.all.partitions).capitalize()
        return f"<h2>{escape(heading)}</h2><p>{partitions} had a leader and an ISR to spare.</p>"
    return (
        f"<h2>{escape(heading)}</h2>{seed}{_chart(stage.worst)}{_table(stage)}{_left(stage.worst)}"
    )


def _table(stage: StageOfAll) -> str:
    touched = sorted(
        (topic for topic in stage.topics if topic.is_touched),
        key=lambda topic: (topic.longest_ms, topic.most, topic.name),
        reverse=True,
    )
    heads = "".join(f'<th class="number">{kind}</th>' for kind in KINDS)
    rows = _row(stage.all, "all") + "".join(_row(topic) for topic in touched[:TOPICS_MAX])
    hidden = len(touched) - TOPICS_MAX
    more = f'<p class="dim">and {counted(hidden, "more topic")}</p>' if hidden > 0 else ""
    return (
        '<div class="scroll"><table class="rules"><thead><tr><th>topic</th>'
        f'<th class="number">partitions</th>{heads}</tr></thead><tbody>{rows}</tbody></table>'
        f"</div>{more}"
    )


def _row(topic: TopicOutcome, kind: str = "") -> str:
    cells = "".join(
        f'<td class="number{" bad" if topic.at_end[n] and n < 2 else ""}">{cell(topic, n)}</td>'
        for n in range(3)
    )
    return (
        f'<tr class="{kind}"><td>{escape(topic.name)}</td>'
        f'<td class="number">{topic.partitions:,}</td>{cells}</tr>'
    )


def _left(stage: Stage) -> str:
    if not stage.left:
        return ""
    items = "".join(f"<li>{escape(str(partition))}</li>" for partition in stage.left)
    count = counted(stage.all.at_end[0] + stage.all.at_end[1], "partition")
    return (
        f"<details><summary>{count} without leader or under min ISR in the end"
        f"</summary><ul>{items}</ul></details>"
    )


def _chart(stage: Stage) -> str:
    """The numbers over the stage's time, one above the other, the gravest at the bottom."""
    series = list(_thinned(stage))
    top = max(1, *(sum(counts) for _, counts in series))
    begin, span = stage.began_ms, max(1, stage.ended_ms - stage.began_ms)

    def x(at_ms: int) -> float:
        return LEFT + (WIDTH - LEFT - 6) * (at_ms - begin) / span

    def y(count: int) -> float:
        return 8 + (HEIGHT - 8 - BOTTOM) * (1 - count / top)

    parts = []
    for place in (2, 1, 0):
        steps = [(at_ms, sum(counts[: place + 1])) for at_ms, counts in series]
        line = f"M{x(begin):.1f} {y(0):.1f}"
        for (at_ms, count), (until_ms, _) in zip(
            steps, [*steps[1:], (stage.ended_ms, 0)], strict=True
        ):
            line += f"L{x(at_ms):.1f} {y(count):.1f}H{x(until_ms):.1f}"
        parts.append(f'<path class="{NAMES[place]}" d="{line}V{y(0):.1f}Z"/>')
    for n in range(5):
        at_ms = begin + span * n // 4
        anchor = "end" if n == 4 else "start" if n == 0 else "middle"
        text = f"{(at_ms - begin) / 1000:g}s"
        parts.append(
            f'<text x="{x(at_ms):.1f}" y="{HEIGHT - 6}" text-anchor="{anchor}">{text}</text>'
        )
    for count in sorted({0, top}):
        parts.append(
            f'<line class="axis" x1="{LEFT}" x2="{WIDTH - 6}" y1="{y(count):.1f}" '
            f'y2="{y(count):.1f}"/><text x="{LEFT - 6}" y="{y(count) + 4:.1f}" '
            f'text-anchor="end">{count:,}</text>'
        )
    keys = "".join(
        f'<span><i class="key {name}"></i>{kind}</span>'
        for name, kind in zip(NAMES, KINDS, strict=True)
    )
    return (
        f'<figure class="line"><p class="legend">{keys}</p><svg viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" aria-label="partitions over time">{"".join(parts)}</svg></figure>'
    )


def _thinned(stage: Stage) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """The series with at most so many points; of neighbours the last stays."""
    step = -(-len(stage.series) // POINTS_MAX)
    for number, point in enumerate(stage.series):
        if number % step == step - 1 or number in (0, len(stage.series) - 1):
            yield point
