"""The zoo: what each planted fault does at the step of a rule that it breaks, machine by machine.

A rule reads as Kafka's and knows of no fault: a function of it is a named ``step``, and a fault
here wraps or replaces that (``minicluster.planting``). Importing this package plants all of them;
a cluster does so when its first fault is switched on, so that others do not load it. Which of them
act, a ``Faults`` value says. Their stories, and the rules that must find them: ``tests/zoo``.
"""

from minicluster.zoo import (
    controller,
    groups,
    metadata,
    quorum,
    replica,
    security,
    transactions,
    zookeeper,
)

__all__ = [
    "controller",
    "groups",
    "metadata",
    "quorum",
    "replica",
    "security",
    "transactions",
    "zookeeper",
]
