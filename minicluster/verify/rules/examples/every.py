"""Every example and near miss, in the order of the files of rules."""

from __future__ import annotations

from typing import Any

from minicluster.verify.rules.example import Example, examples_in
from minicluster.verify.rules.examples import (
    brokers,
    clients,
    groups,
    header,
    images,
    isr_changes,
    memberships,
    partitions,
    quorum,
    replica_logs,
    replicas,
    requests,
    time,
    topics,
    transactions,
    znodes,
)

_MODULES = (
    partitions,
    memberships,
    brokers,
    topics,
    quorum,
    images,
    isr_changes,
    replicas,
    replica_logs,
    requests,
    clients,
    groups,
    transactions,
    time,
    header,
    znodes,
)

EXAMPLES: tuple[Example[Any], ...] = tuple(
    example for module in _MODULES for example in examples_in(module)
)
