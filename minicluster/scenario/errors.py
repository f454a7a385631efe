"""A scenario that cannot be played as it is written."""

from __future__ import annotations

from minicluster.errors import UserError


class ScenarioError(UserError):
    """One line: which file and step, what is wrong with it, what to write instead."""

    exit_code = 65
