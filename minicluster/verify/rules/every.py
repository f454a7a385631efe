"""Every rule, in the order of its id, and every history over a trace."""

from __future__ import annotations

from minicluster.verify import directories, header, memberships, znodes
from minicluster.verify.exchange import driver as exchange
from minicluster.verify.group import driver as group
from minicluster.verify.histories.traced_run import History
from minicluster.verify.images import driver as images
from minicluster.verify.model import Evidence
from minicluster.verify.partition import driver as partition
from minicluster.verify.producers import driver as producers
from minicluster.verify.programs import driver as programs
from minicluster.verify.quorum import driver as quorum
from minicluster.verify.rules import brokers, partitions, topics
from minicluster.verify.rules.rule import Rule, rules_in
from minicluster.verify.waits import driver as waits
from minicluster.verify.waits import liveness

MODULES = (
    partitions,
    memberships,
    brokers,
    topics,
    *quorum.MODULES,
    *images.MODULES,
    directories,
    *partition.MODULES,
    *exchange.MODULES,
    *group.MODULES,
    *producers.MODULES,
    liveness,
    *programs.MODULES,
    header,
    znodes,
)


def _order(rule: Rule) -> tuple[str, int]:
    """B2 comes before B10."""
    letters = rule.id.rstrip("0123456789")
    return letters, int(rule.id[len(letters) :] or 0)


RULES: tuple[Rule, ...] = tuple(
    sorted((rule for module in MODULES for rule in rules_in(module)), key=_order)
)
BY_ID = {rule.id: rule for rule in RULES}
# Rules over traces that need no metadata log. Those that excuse losses by unclean elections do.
ALSO_ON_ZOOKEEPER = frozenset(
    ("B2", "B7", "B8", "B10", "E27", "E42", "F1", "F8", "F14", "F15", "F16", "F17", "F18", "X1")
)
ON_ZOOKEEPER = tuple(
    rule for rule in RULES if rule.evidence is Evidence.ZNODES or rule.id in ALSO_ON_ZOOKEEPER
)
HISTORIES: tuple[History, ...] = (
    partition.HISTORY,
    exchange.HISTORY,
    quorum.HISTORY,
    images.HISTORY,
    directories.HISTORY,
    group.HISTORY,
    producers.HISTORY,
    waits.HISTORY,
    programs.HISTORY,
    znodes.HISTORY,
    header.HISTORY,
)
