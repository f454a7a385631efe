"""A rule: one invariant, declared once as data, with its form in SQL.

A rule has one or more checks. A check reads one *view*: a pass over one key (partition, broker,
batch, …) that computes the rows of all checks of that view at once. ``when`` selects the rows that
the check judges, ``bad`` those of them that break the rule; both are SQL over the columns of the
view. The other fields name the columns that a finding takes from its row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from minicluster.lazy_dataclass import dataclass

Row = Mapping[str, Any]


class Evidence(StrEnum):
    """The evidence that a rule needs at least."""

    LOG = "log"  # the committed metadata log
    QUORUM = "quorum"  # every controller's own log
    SNAPSHOTS = "snapshots"  # the snapshots beside the committed log
    TRACE = "trace"  # the event trace of a run
    IMAGES = "images"  # the images that nodes published, beside the log
    META = "meta"  # the header of a run
    ZNODES = "znodes"  # the transaction log of ZooKeeper


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


# Levels of metadata.version from which promises hold. Kafka 3.0 to 3.2 write no FeatureLevelRecord.
WITHOUT_RECORD = 1  # 3.0-IV1 (MetadataVersion.MINIMUM_KRAFT_VERSION)
FROM_3_2 = 3  # 3.2-IV0: leader recovery states are in the log
FROM_3_3 = 7  # 3.3-IV3: controlled shutdown is in the log (KIP-841)
FROM_ELR = 23  # 4.0-IV1: eligible leader replicas can be written (KIP-966)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The rows of some checks, as SQL over the tables of facts and over other views.

    Shapes:  empty_unless: table, column and value of which some row is needed, else the view is
             empty (no column: any row), and is not compiled.
             fold: in place of SQL, a function from the rows of tables, as dictionaries, to the
             view's rows, each of which has the ``columns``; it may read the tables ``reads``, or
             all where none are named. key: columns of what it reads; rows that differ in them have
             nothing to do with each other, so that shares of a long log can be folded apart.
    """

    name: str
    sql: str = ""
    fold: Callable[[Callable[[str], list[Row]]], Iterable[Row]] | None = None
    columns: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    empty_unless: tuple[str, str | None, int | str | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One condition over the rows of one view.

    Shapes:  ``message`` is a format string over broker, old, new, number, topic, partition, offset.
    """

    view: str
    when: str
    bad: str
    message: str
    offset: str = "offset"
    topic: str = "topic"
    partition: str = "part"
    broker: str = "null"
    old: str = "null"
    new: str = "null"
    number: str = "null"
    counts: bool = True  # whether its rows are cases of the rule
    promised: str | None = None  # SQL: the promise holds for the row; None: by the rule's level


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One invariant of the log, the images or the replicas."""

    id: str
    title: str
    statement: str
    source: str
    evidence: Evidence
    checks: tuple[Check, ...]
    promised_from: int | None = None
    online: bool = False
    tables: tuple[str, ...] = field(default=())  # trace tables that it reads

    @property
    def views(self) -> tuple[str, ...]:
        """The views of its checks, each once, in order."""
        return tuple(dict.fromkeys(check.view for check in self.checks))


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Finding:
    """One violation of a rule.

    Units:   offset in the metadata log, -1 where only the trace shows it; partition and broker are
             -1 where the rule is about none.
    """

    run: str
    offset: int
    rule: str
    topic: str = ""
    partition: int = -1
    broker: int = -1
    message: str = ""


def finding_message(
    check: Check,
    *,
    offset: int | None,
    topic: str | None,
    partition: int | None,
    broker: int | None = None,
    old: list[int] | None = None,
    new: list[int] | None = None,
    number: int | None = None,
) -> str:
    """The sentence of a finding; the online checker and Spark use the same."""
    return check.message.format(
        offset=offset,
        topic=topic,
        partition=partition,
        broker=broker,
        old=_list(old),
        new=_list(new),
        number=number,
    )


def _list(ids: list[int] | None) -> str:
    return "[" + ", ".join(str(i) for i in ids or ()) + "]"
