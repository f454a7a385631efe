"""The APIs of the coordinators, by which a broker routes requests to them and advertises them.

Source:  KafkaApis.handle.
"""

from __future__ import annotations

from minicluster.coordinator.group.machine import HANDLERS as OF_GROUPS
from minicluster.coordinator.transaction.machine import HANDLERS as OF_TRANSACTIONS
from minicluster.protocol import Message
from minicluster.protocol import messages as m

GROUP_APIS = frozenset(OF_GROUPS)
TRANSACTION_APIS = frozenset(OF_TRANSACTIONS)
COORDINATOR_APIS: frozenset[type[Message]] = frozenset(
    {*GROUP_APIS, *TRANSACTION_APIS, m.WriteTxnMarkersRequest}
)
"""Markers are for the logs of partitions, of which one may be that of groups."""
