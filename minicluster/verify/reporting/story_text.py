"""The story of a run as lines: each step at its moment, and between them what came of it."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from minicluster.values import Value
from minicluster.verify.evidence.run import Run
from minicluster.verify.reporting.happenings import happenings
from minicluster.verify.reporting.scale import Clock
from minicluster.verify.reporting.story import listed_nodes, story_of
from minicluster.verify.reporting.text import Printer
from minicluster.verify.reporting.timeline import timeline

_MOMENT = 9  # columns of a moment


class StoryLine(Value):
    """One line of a story: a step, or what happened."""

    at_ms: int
    text: str
    is_step: bool
    style: str = ""


def story_lines(run: Run) -> list[StoryLine]:
    """The steps of a run with the nodes that they named, and what happened, in order."""
    story = story_of(run)
    lines = [
        StoryLine(happening.at_ms, happening.text, False, "yellow" * happening.is_rejection)
        for happening in happenings(timeline(run), story, Clock(run))
    ]
    for step in story.steps:
        if (performed := step.performed) is None:
            continue
        nodes = ", ".join(
            f"{name}: {listed_nodes(value, story.clients)}"
            for name, value in performed.resolved.items()
        )
        text = f"{step.text} ({nodes})" if nodes else step.text
        lines.append(StoryLine(performed.at_ms, text, True))
        if told := performed.note or performed.result:
            style = "red" * performed.failed
            lines.append(StoryLine(performed.ended_ms, told, False, style))
    # What ends a step's wait has the moment of the next step, and comes before it.
    return sorted(lines, key=lambda line: (line.at_ms, line.is_step))


def print_story(console: Console, run: Run, *, width: int | None) -> None:
    """Print the story of a run; what happened is indented below the step before it."""
    printer = Printer(console, width)
    for line in story_lines(run):
        moment = f"{line.at_ms / 1000:{_MOMENT - 1}.1f}s"
        indent = 2 if line.is_step else 4
        style = line.style or ("bold" if line.is_step else "")
        before = len(moment) - len(moment.lstrip())
        printer.line(
            Text(f"{moment}{' ' * indent}") + Text(line.text, style),
            hang=len(moment) - before + indent,
        )
