"""A run played again from its seed: the same trace, and the same verdict?"""

from __future__ import annotations

import json
from pathlib import Path

from minicluster.actors.play.campaign import STALE, broken_at_end
from minicluster.actors.play.player import Played, play
from minicluster.errors import UserError
from minicluster.log.errors import NotALog
from minicluster.log.locating import RUN_NAME
from minicluster.scenario.reading import scenario_of
from minicluster.values import Value
from minicluster.verify.evidence.run_header import (
    RUN_FORMAT,
    DamagedHeader,
    RunHeader,
    read_header,
)


class Before(Value):
    """A run before it is played again.

    Shapes:  format: of the run folder; trace_hash: None where that format is an earlier one, whose
             hashes cannot be compared; failure: kind and rule of its scenario's failure, None where
             it went as written, or where a version of minicluster that did not record it made the
             run.
    """

    format: int
    trace_hash: str | None
    failure: tuple[str, str | None] | None


def replay_run(run: Path, *, runs: Path) -> tuple[Before, Played]:
    """Play the scenario of a run folder again.

    Shapes:  -> the first run, and the run that has ended now.
    Errors:  UserError if the folder holds no run that a scenario made.
    """
    header = _header(run)
    if header.intercepted:
        seen = "; ".join(header.intercepted)
        raise UserError(f"{run}: functions of its test saw requests ({seen}); repeat the test")
    if not header.scenario:
        raise UserError(f"{run}: no scenario made this run; only a scenario can be played again")
    scenario = scenario_of(header.scenario, where=str(run / RUN_NAME))
    failure = None if header.failure is None else (header.failure.kind, header.failure.rule)
    trace_hash = str(header.trace_hash) if header.format == RUN_FORMAT else None
    before = Before(format=header.format, trace_hash=trace_hash, failure=failure)
    played = play(
        scenario,
        runs=runs / "replay",
        repeat=before.trace_hash,
        # A campaign judges the state at the end, which a scenario alone does not.
        at_end=broken_at_end if failure == ("violated", STALE) else lambda _: None,
    )
    return before, played


def changed_code(run: Path, again: Path) -> list[str]:
    """The sources of a run's programs that are others now, a line each.

    Shapes:  run, again: the folders of the run and of its replay.
    """
    then, now = (json.loads((folder / RUN_NAME).read_text()) for folder in (run, again))
    sources = {app["name"]: app for app in then.get("apps", ())}
    versions = then.get("versions", {})
    return [
        *(
            f"the source of {app['run']} (app {app['name']}) has changed since"
            for app in now.get("apps", ())
            if sources.get(app["name"], app)["sha256"] != app["sha256"]
        ),
        *(
            f"{library} {versions[library]} then, {version} now"
            for library, version in now.get("versions", {}).items()
            if versions.get(library, version) != version
        ),
    ]


def _header(run: Path) -> RunHeader:
    path = run / RUN_NAME
    if not run.exists():
        raise NotALog(f"{run}: there is no such folder")
    if not path.exists():
        raise NotALog(f"{run}: not a run folder: it has no {RUN_NAME}")
    try:
        return read_header(path)
    except DamagedHeader as error:
        raise NotALog(str(error)) from None
