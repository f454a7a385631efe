"""Runs of scenarios that many tests look at: a worker plays each of them once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from minicluster.actors.play.player import Played, play
from minicluster.scenario import load_scenario


class PlayedOnce:
    """The run of a scenario's file with these faults, played when it is first asked for.

    Nobody changes what is in its folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._played: dict[tuple[Path, tuple[str, ...]], Played] = {}

    def __call__(self, file: Path, *faults: str) -> Played:
        """Play it, or take the run that is there."""
        key = file, faults
        if key not in self._played:
            scenario = replace(load_scenario(file), faults=faults)
            self._played[key] = play(scenario, runs=self._folder)
        return self._played[key]
