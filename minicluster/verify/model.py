"""Words that everything in the judge shares: kinds of evidence, verdicts, findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import field
from enum import StrEnum

from minicluster.errors import counted
from minicluster.values import dataclass


class Evidence(StrEnum):
    """The evidence that a rule needs at least."""

    LOG = "log"  # the committed metadata log
    QUORUM = "quorum"  # every controller's own log
    SNAPSHOTS = "snapshots"  # the snapshots beside the committed log
    TRACE = "trace"  # the event trace of a run
    IMAGES = "images"  # the images that nodes published, beside the log
    META = "meta"  # the header of a run
    ZNODES = "znodes"  # the transaction log of ZooKeeper
    PROGRAMS = "programs"  # the trace of a run with users' programs inside


class Verdict(StrEnum):
    """The verdict on a rule and on the whole.

    Source:  the order of gravity is that of Jepsen: invalid, unknown, valid.
    """

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"
    NO_CASES = "no_cases"
    NOT_PROMISED = "not_promised"
    NOT_APPLICABLE = "not_applicable"


# The gravest verdict over several runs or rules wins.
GRAVITY = (
    Verdict.INVALID,
    Verdict.UNKNOWN,
    Verdict.VALID,
    Verdict.NOT_PROMISED,
    Verdict.NO_CASES,
    Verdict.NOT_APPLICABLE,
)


def gravest(verdicts: Collection[Verdict]) -> Verdict:
    """The verdict on the whole of several parts."""
    return next(verdict for verdict in GRAVITY if verdict in verdicts)


def exit_code(verdict: Verdict) -> int:
    """The exit code of a command with this verdict."""
    return {Verdict.VALID: 0, Verdict.INVALID: 1}.get(verdict, 2)


LOST = "F1"  # the rule each of whose findings is an acknowledged record that is gone

# Levels of metadata.version from which promises hold. Kafka 3.0 to 3.2 write no FeatureLevelRecord.
WITHOUT_RECORD = 1  # 3.0-IV1 (MetadataVersion.MINIMUM_KRAFT_VERSION)
FROM_3_2 = 3  # 3.2-IV0: leader recovery states are in the log
FROM_3_3 = 7  # 3.3-IV3: controlled shutdown is in the log (KIP-841)
FROM_3_6 = 12  # 3.6-IV0: shrinking an ISR raises no leader epoch any more (KAFKA-15021)
FROM_ELR = 23  # 4.0-IV1: eligible leader replicas can be written (KIP-966)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Finding:
    """One violation of a rule.

    Shapes:  event: of the trace, by its number (``seq``); earlier: one before it without which it
             were none, such as the acknowledgement of a record that is lost; request: its number.
    Units:   offset in the metadata log, -1 where only the trace shows it; all others are -1 where
             the rule is about none.
    """

    run: str
    offset: int
    rule: str
    topic: str = ""
    partition: int = -1
    broker: int = -1
    message: str = ""
    # A value that two events show is one finding, and so is one that is seen live and afterwards.
    event: int = field(default=-1, compare=False)
    earlier: int = field(default=-1, compare=False)
    request: int = field(default=-1, compare=False)


def headline(findings: Iterable[Finding]) -> str | None:
    """The worst that a run can show, in a few words: what was promised to clients is gone."""
    lost = sum(finding.rule == LOST for finding in findings)
    return f"{counted(lost, 'acknowledged record')} lost" if lost else None
