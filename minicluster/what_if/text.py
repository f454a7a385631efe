"""A what-if as text: a table for each stage, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from minicluster.errors import counted
from minicluster.what_if.outcome import KINDS, StageOfAll, TopicOutcome, WhatIf

TOPICS_SHOWN = 15
LEFT_SHOWN = 8
NAME_WIDTH = 40


def lines_of(outcome: WhatIf, *, every_topic: bool = False) -> Iterator[str]:
    """The whole outcome, line by line."""
    yield f"{outcome.log}: {outcome.description}"
    for note in outcome.notes:
        yield f"  {note}"
    if len(outcome.seeds) > 1:
        first, last = outcome.seeds[0].seed, outcome.seeds[-1].seed
        yield f"  {len(outcome.seeds)} seeds ({first} to {last}): each number is the worst of them"
    for number, stage in enumerate(outcome.stages()):
        yield ""
        yield from _stage(stage, number, every_topic)
    for play in outcome.seeds:
        if play.failure is not None:
            yield ""
            yield f"seed {play.seed} {play.failure.verdict}: {play.failure.text}"


def _stage(stage: StageOfAll, number: int, every_topic: bool) -> Iterator[str]:
    yield f"{number}. {stage.text}" if number else "before the scenario"
    worst = f"  (worst: seed {stage.worst_seed})" if stage.seeds > 1 else ""
    if not (stage.all.is_touched if number else any(stage.all.at_end)):
        yield f"   {every_partition(stage.all.partitions)} had a leader and an ISR to spare"
        return
    if not number:  # the state that the scenario found
        counts = ", ".join(f"{n:,} {k}" for n, k in zip(stage.all.at_end, KINDS, strict=True))
        yield f"   {counts}"
        return
    touched = touched_topics(stage)
    shown = touched if every_topic else touched[:TOPICS_SHOWN]
    rows = [("topic", "partitions", *KINDS), *(_row(topic) for topic in (stage.all, *shown))]
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        first = row[0].ljust(widths[0])
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        yield "   " + "  ".join((first, *rest)).rstrip()
    if len(shown) < len(touched):
        yield f"   … and {counted(len(touched) - len(shown), 'more topic')} (--every-topic)"
    if stage.seeds > 1:
        mild = ", ".join(f"{n:,} {k}" for n, k in zip(stage.least.most, KINDS, strict=True))
        yield f"   the mildest seed: {mild}{worst}"
    yield from _left(stage)


def touched_topics(stage: StageOfAll) -> list[TopicOutcome]:
    """The topics that the stage has touched, the worst first."""
    return sorted(
        (topic for topic in stage.topics if topic.is_touched),
        key=lambda topic: (topic.longest_ms, topic.most, topic.name),
        reverse=True,
    )


def every_partition(count: int) -> str:
    """All partitions of a cluster in words."""
    return f"all {count:,} partitions" if count > 1 else "the partition"


def _row(topic: TopicOutcome) -> tuple[str, ...]:
    name = topic.name if len(topic.name) <= NAME_WIDTH else topic.name[: NAME_WIDTH - 1] + "…"
    return (name, f"{topic.partitions:,}", *(cell(topic, place) for place in range(3)))


def cell(topic: TopicOutcome, place: int) -> str:
    """One number: how many at most, how many in the end, for how long."""
    most = topic.most[place]
    if not most:
        return "-"
    end = topic.at_end[place]
    if end == most:
        return f"{most:,} to the end"
    if end:
        return f"{most:,}, {end:,} to the end"
    return f"{most:,} for {topic.longest_ms[place] / 1000:,.1f}s"


def _left(stage: StageOfAll) -> Iterator[str]:
    left: Sequence[object] = stage.worst.left
    if left:
        yield "   in the end:"
    for partition in left[:LEFT_SHOWN]:
        yield f"     {partition}"
    none, under, _ = stage.worst.all.at_end
    more = none + under - min(LEFT_SHOWN, len(left))
    if more > 0:
        yield f"     … and {more:,} more"
