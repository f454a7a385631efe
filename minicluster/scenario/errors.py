"""A scenario that cannot be played as it is written."""

from __future__ import annotations

from minicluster.errors import UserError


class ScenarioError(UserError):
    """One line: which file and step, what is wrong with it, what to write instead."""

    exit_code = 65


class NoScenarioFile(ScenarioError):
    """A path at which no file is."""

    exit_code = 66
