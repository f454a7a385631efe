"""The subjects of rules: the letter of a rule's id, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from minicluster.errors import counted
from minicluster.values import Value
from minicluster.verify.model import Verdict
from minicluster.verify.reporting.report_data import WITHOUT_CASES, RuleResult
from minicluster.verify.rules.every import BY_ID

SUBJECTS: Mapping[str, str] = {
    "A": "Members of ISRs",
    "B": "ISR changes and high watermarks",
    "C": "Leader recovery",
    "D": "Log directories and broker epochs",
    "E": "Quorum, metadata and its images",
    "F": "Records, clients and replicas' logs",
    "G": "What has to come in time",
    "H": "Groups and transactions",
    "K": "ZooKeeper",
    "P": "Programs inside the simulation",
    "U": "Users and their rights",
    "X": "Played twice with one seed",
}
OWN = "Rules of your own"
_REPETITION = "X"


class Subject(Value):
    """The results of the rules about one subject, in the order of the report."""

    title: str
    letter: str
    results: tuple[RuleResult, ...]

    @property
    def judged(self) -> tuple[RuleResult, ...]:
        """The rules that had something to judge, or should have had."""
        return tuple(result for result in self.results if result.verdict not in WITHOUT_CASES)

    @property
    def without_cases(self) -> tuple[RuleResult, ...]:
        """The rules that had nothing to judge."""
        return tuple(result for result in self.results if result.verdict in WITHOUT_CASES)

    @property
    def cases(self) -> int:
        """How much was judged."""
        return sum(result.looked_at for result in self.results)

    def of(self, verdict: Verdict) -> tuple[RuleResult, ...]:
        """The rules with a verdict."""
        return tuple(result for result in self.results if result.verdict is verdict)

    @property
    def verdict(self) -> Verdict:
        """The gravest verdict of its rules."""
        for grave in (Verdict.INVALID, Verdict.UNKNOWN, Verdict.VALID):
            if self.of(grave):
                return grave
        return self.results[0].verdict

    @property
    def in_words(self) -> str:
        """The outcome of its rules, for people."""
        if not self.judged:
            if self.verdict is Verdict.NO_CASES or not self.results[0].reasons:
                return "nothing to check in this run"
            return self.results[0].reasons[0]
        if self.verdict is Verdict.VALID:
            if self.letter == _REPETITION:
                return "the same events"
            return f"{counted(len(self.judged), 'rule')} checked {counted(self.cases, 'time')}"
        broken = self.of(Verdict.INVALID)
        ids = ", ".join(each.id for each in broken or self.of(Verdict.UNKNOWN))
        return f"{'broken' if broken else 'unknown'}: {ids}"


def subjects(results: Iterable[RuleResult]) -> list[Subject]:
    """The results by subject; a user's own rules come last."""
    by_letter: dict[str, list[RuleResult]] = {letter: [] for letter in (*SUBJECTS, "")}
    for result in results:
        own = result.id not in BY_ID
        letter = "" if own else result.id.rstrip("0123456789")
        by_letter.setdefault(letter, []).append(result)
    return [
        Subject(SUBJECTS.get(letter, OWN), letter, tuple(of_letter))
        for letter, of_letter in by_letter.items()
        if of_letter
    ]
