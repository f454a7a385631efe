"""Processes of users' programs, and what they died of."""

from __future__ import annotations

from minicluster.verify.model import Evidence
from minicluster.verify.programs.requests import Process, Processes
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, exempt, rule


def on_processes(processes: Processes) -> Said:
    """Each process of each program, when the run is over."""
    last = {process.program: process for process in processes.every}
    for process in processes.every:
        is_last, told = process is last[process.program], processes.last_error.get(process)
        yield from programs_do_not_fail(process, is_last, told)


@rule("P5", "Programs do not fail",
      source="design of this project", at_end=True, evidence=Evidence.PROGRAMS, tables=("rpc",),
      breaks="A program ends with a KafkaError, and nobody has read it.",
      keeps="A program is killed, and another one fails with an error that the test "
      "has read.")  # fmt: skip
def programs_do_not_fail(process: Process, is_last: bool, told: str | None) -> Findings:
    """No program ends with an error, unless the test has read it (``app.error``) or has started the
    program again."""
    life, failed = process.life, process.life.ended == "failed"
    if life.ended is None:
        return
    if failed and life.error_read:
        yield exempt("the test has read the error")
        return
    if failed and not is_last:
        yield exempt("the program was started again")
        return
    yield CASE
    if failed:
        at_s = (life.ended_ms or 0) / 1000
        said = "" if told is None else f" (the last error that it was told: {told})"
        yield broken(
            f"{process.text} died at {at_s:g} s of {life.error}{said}; accused is the program"
        )
