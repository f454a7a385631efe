"""A what-if as one HTML page: no script, no font, no network; light, dark and printed.

What it shows stands in ``templates/what_if.html``; here is what is counted and drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from minicluster.values import Value
from minicluster.verify.reporting.templating import rendered
from minicluster.version import VERSION
from minicluster.what_if.outcome import KINDS, NAMES, Stage, WhatIf
from minicluster.what_if.text import cell, every_partition, touched_topics

WIDTH, HEIGHT, LEFT, BOTTOM = 1000, 150, 64, 22
TOPICS_MAX = 200
POINTS_MAX = 2_000


def page(outcome: WhatIf) -> str:
    """The whole page."""
    stages = outcome.stages()
    worst = [max((stage.all.most[n] for stage in stages[1:]), default=0) for n in range(3)]
    notes = list(outcome.notes)
    if len(outcome.seeds) > 1:
        first, last = outcome.seeds[0].seed, outcome.seeds[-1].seed
        notes.append(f"{len(outcome.seeds)} seeds, {first} to {last}: of each number the worst")
    notes += [f"seed {play.seed}: {play.failure.text}" for play in outcome.seeds if play.failure]
    return rendered(
        "what_if.html",
        "minicluster.what_if",
        outcome=outcome,
        stages=stages,
        state="invalid" if worst[0] else "unknown" if worst[1] else "valid",
        worst=list(zip(worst, KINDS, strict=True)),
        notes=notes,
        kinds=KINDS,
        keys=list(zip(NAMES, KINDS, strict=True)),
        topics_max=TOPICS_MAX,
        cell=cell,
        every_partition=every_partition,
        touched_topics=touched_topics,
        charted=Chart.of,
        made=f"minicluster {VERSION}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )


class Chart(Value, kw_only=True):
    """The numbers over a stage's time, one above the other, the gravest at the bottom.

    Shapes:  areas: the class and the outline of each; times: x, anchor and text; counts: y and the
             number that is written there.
    """

    areas: Sequence[tuple[str, str]]
    times: Sequence[tuple[float, str, str]]
    counts: Sequence[tuple[float, int]]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT

    @classmethod
    def of(cls, stage: Stage) -> Chart:
        """The chart of one stage."""
        series = list(_thinned(stage))
        top = max(1, *(sum(counts) for _, counts in series))
        begin, span = stage.began_ms, max(1, stage.ended_ms - stage.began_ms)

        def x(at_ms: int) -> float:
            return LEFT + (WIDTH - LEFT - 6) * (at_ms - begin) / span

        def y(count: int) -> float:
            return 8 + (HEIGHT - 8 - BOTTOM) * (1 - count / top)

        def outline(place: int) -> str:
            steps = [(at_ms, sum(counts[: place + 1])) for at_ms, counts in series]
            ends = [at_ms for at_ms, _ in steps[1:]] + [stage.ended_ms]
            line = f"M{x(begin):.1f} {y(0):.1f}"
            for (at_ms, count), until_ms in zip(steps, ends, strict=True):
                line += f"L{x(at_ms):.1f} {y(count):.1f}H{x(until_ms):.1f}"
            return f"{line}V{y(0):.1f}Z"

        marks = [begin + span * quarter // 4 for quarter in range(5)]
        anchors = ("start", "middle", "middle", "middle", "end")
        return cls(
            areas=[(NAMES[place], outline(place)) for place in (2, 1, 0)],
            times=[
                (x(at_ms), anchor, f"{(at_ms - begin) / 1000:g}s")
                for at_ms, anchor in zip(marks, anchors, strict=True)
            ],
            counts=[(y(count), count) for count in (0, top)],
        )


def _thinned(stage: Stage) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """The series with at most so many points; of neighbours the last stays."""
    step = -(-len(stage.series) // POINTS_MAX)
    for number, point in enumerate(stage.series):
        if number % step == step - 1 or number in (0, len(stage.series) - 1):
            yield point
