"""``minicluster demo``, and what a terminal shows while a spinner turns."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path

import pytest

from minicluster.cli import run

STORY = """
name: a leader crashes
description: Its follower takes over, and nothing is lost.
cluster: {controllers: 1, brokers: 2, seed: 3}
steps:
  - {do: create_topic, name: orders, replicas: 2, min_isr: 1}
  - {do: produce, topic: orders, count: 3}
  - {after: 1s, do: bounce, node: leader(orders-0), down: 20s}
  - {after: 15s, until: fully_in_sync(orders-0), within: 60s}
"""
PRINTS = """
from minicluster.cli.terminal import complain, print_line, progress
with progress() as shown:
    task = shown.add_task("a step whose description is long enough to fill a narrow line", total=9)
    for number in range(4):
        shown.update(task, completed=number, refresh=True)
        print_line(f"line {number}, which is longer than the narrowest of the terminals below")
        complain(f"complaint {number}")
print_line("end")
"""


def in_terminal(columns: int, *command: str) -> bytes:
    """What a command writes to a terminal of this width."""
    pid, terminal = pty.fork()
    if pid == 0:  # the width is set here: a loaded machine starts the command before its parent
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        own = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "LINES")}
        os.execve(sys.executable, [sys.executable, *command], {**own, "TERM": "xterm"})
    written = b""
    while True:
        try:
            written += os.read(terminal, 1 << 16)
        except OSError:  # the command has ended
            break
    os.waitpid(pid, 0)
    return written


def rendered(written: bytes, columns: int) -> list[str]:
    """The lines that a person sees, by the few control sequences that rich writes."""
    screen: list[list[str]] = [[]]
    row = column = 0
    for part in re.findall(r"\x1b\[\??[\d;]*[A-Za-z]|[\r\n]|[^\x1b\r\n]", written.decode()):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
        elif part == "\x1b[2K":
            screen[row] = []
        elif up := re.fullmatch(r"\x1b\[(\d*)A", part):
            row = max(0, row - int(up[1] or 1))
        elif not part.startswith("\x1b"):
            if column == columns:
                row, column = row + 1, 0
            screen += [[] for _ in range(row + 1 - len(screen))]
            screen[row] += " " * (column - len(screen[row]))
            screen[row][column : column + 1] = part
            column += 1
        screen += [[] for _ in range(row + 1 - len(screen))]
    lines = ["".join(cells).rstrip() for cells in screen]
    return [line for line in lines if line]


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_spinner_and_the_lines_beside_it_share_one_terminal(columns: int) -> None:
    """Two consoles do not know of each other: the spinner was glued to each line."""
    lines = rendered(in_terminal(columns, "-c", PRINTS), columns)

    long = "line {}, which is longer than the narrowest of the terminals below"
    wanted = [each for n in range(4) for each in (long.format(n), f"complaint {n}")]
    wrapped = [
        line[start : start + columns].rstrip()
        for line in wanted
        for start in range(0, len(line), columns)
    ]
    assert lines == [*wrapped, "end"]


@pytest.mark.spark
def test_a_demo_tells_what_was_done_and_what_happened_and_that_its_check_can_fail(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    story = tmp_path / "story.yaml"
    story.write_text(STORY)

    code = run(["demo", str(story), "--fault", "S26", "--runs", str(tmp_path / "runs")])

    printed = capfd.readouterr()
    lines = printed.out.splitlines()
    assert code == 0 and printed.err == ""
    assert lines[0] == "a leader crashes" and "Its follower takes over" in lines[1]
    assert lines[2].startswith("Played twice from seed 3, in two processes")
    told = [line[9:] for line in lines if re.match(r" *\d+\.\ds  ", line)]
    steps = [line.strip() for line in told if re.match(r"  \S", line)]
    assert [line.split()[0] for line in steps] == ["create_topic", "produce", "after", "after"]
    happened = [line.strip() for line in told if re.match(r"    \S", line)]
    leader, other = re.findall(r"orders-0: leader (\d), ISR \[\d, (\d)\]", "\n".join(happened))[0]
    assert f"after 1s bounce node=leader(orders-0) down=20s (node: {leader})" in steps
    assert "3 of 3 acknowledged at offsets 0 to 2" in happened
    fenced = happened.index(f"broker {leader} fenced")
    assert happened.index(f"broker {leader} registered again") > fenced
    assert any(f"orders-0: leader {leader} → {other}" in line for line in happened)
    verdict = next(n for n, line in enumerate(lines) if line.startswith("VALID"))
    assert re.match(r"VALID \d+ rules checked [\d,]+ times, none broken; \d+ had", lines[verdict])
    assert "  Played twice with one seed           the same events" in lines[verdict:]
    places = [line.split()[0] for line in lines if line.startswith(("run ", "report ", "repeat "))]
    assert places == ["run", "report", "repeat", "report"]
    asked = next(n for n, line in enumerate(lines) if "Played again with fault S26" in line)
    proof = lines[asked:]
    assert proof[1] == "INVALID: as it should be" and proof[2].startswith("  E40  ")


@pytest.mark.spark
def test_a_fault_that_nothing_finds_makes_a_demo_unknown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    story = tmp_path / "story.yaml"
    story.write_text(STORY)
    assert run(["demo", str(story), "--fault", "Z41", "--runs", str(tmp_path / "runs")]) == 2
    assert "UNKNOWN: the fault was not found" in capfd.readouterr().out
    assert run(["demo", str(story), "--fault", "Z999"]) == 64
