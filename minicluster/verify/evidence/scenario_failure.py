"""The way a scenario failed to go as written, which is part of the verdict on its run."""

from __future__ import annotations

from typing import Literal

from minicluster.values import Value
from minicluster.verify.model import Verdict

Kind = Literal["expect", "until", "no_response", "refused", "crash", "violated", "stuck", "unseen"]


class ScenarioFailure(Value):
    """The reason that a scenario failed.

    Shapes:  text: the first line has the step and the reason, more lines show the cluster then.
    """

    kind: Kind
    text: str
    rule: str | None = None  # the promise that was broken, where one was

    @property
    def is_unknown(self) -> bool:
        """True where it did not become clear whether a promise holds."""
        return self.kind in ("until", "no_response", "refused", "unseen")

    @property
    def verdict(self) -> Verdict:
        """The verdict on a run in which nothing else is wrong."""
        return Verdict.UNKNOWN if self.is_unknown else Verdict.INVALID

    def to_dict(self) -> dict[str, str | None]:
        """The failure as ``run.json`` and the report's JSON have it."""
        return {
            "kind": self.kind,
            "verdict": str(self.verdict),
            "rule": self.rule,
            "text": self.text,
        }
