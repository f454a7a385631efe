"""A run played again from its seed: the same trace, and the same verdict?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from minicluster.actors.play.campaign import AT_END, broken_at_end
from minicluster.actors.play.player import Played, play
from minicluster.errors import UserError
from minicluster.lazy_dataclass import dataclass
from minicluster.log.directory import RUN_NAME
from minicluster.log.errors import NotALog
from minicluster.scenario.reading import scenario_of


@dataclass(frozen=True, slots=True)
class Before:
    """A run before it is played again.

    Shapes:  failure: kind and rule of its scenario's failure, None where it went as written, or
             where a version of minicluster that did not record it made the run.
    """

    trace_hash: str
    failure: tuple[str, str | None] | None


def replay_run(run: Path, *, runs: Path) -> tuple[Before, Played]:
    """Play the scenario of a run folder again.

    Shapes:  -> the first run, and the run that has ended now.
    Errors:  UserError if the folder holds no run that a scenario made.
    """
    header = _header(run)
    if not header.get("scenario"):
        raise UserError(f"{run}: no scenario made this run; only a scenario can be played again")
    scenario = scenario_of(header["scenario"], where=str(run / RUN_NAME))
    found = header.get("failure")
    failure = (str(found.get("kind")), found.get("rule")) if isinstance(found, dict) else None
    before = Before(trace_hash=str(header.get("trace_hash")), failure=failure)
    played = play(
        scenario,
        runs=runs / "replay",
        repeat=before.trace_hash,
        # A campaign judges the state at the end, which a scenario alone does not.
        at_end=broken_at_end if failure in AT_END else lambda _: None,
    )
    return before, played


def _header(run: Path) -> dict[str, Any]:
    path = run / RUN_NAME
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotALog(f"{run}: not a run folder: it has no {RUN_NAME}") from None
    except (OSError, ValueError) as error:
        raise NotALog(f"{path}: cannot be read: {error}") from None
    return header if isinstance(header, dict) else {}
