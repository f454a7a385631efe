"""Client quotas, and the producer ids that have been handed out.

Source:  KIP-546, KIP-730; ClientQuotasImage, ProducerIdsImage.
"""

from __future__ import annotations

from msgspec import field

from minicluster.metadata.image.tables import Fold, GroupedTable, fingerprint
from minicluster.protocol.records import ClientQuotaRecord, ProducerIdsRecord
from minicluster.values import Value

Entity = tuple[tuple[str, str | None], ...]
"""(entity type, entity name) pairs by type; no name means the type's default."""

NO_PRODUCER_IDS = -1


class ClientQuotasImage(Value):
    """The quotas of every entity that has any."""

    table: GroupedTable[Entity, str, float] = field(default_factory=lambda: GroupedTable("quota"))

    @property
    def fingerprint(self) -> int:
        """The hash of this section."""
        return self.table.fingerprint


class ProducerIdsImage(Value):
    """The first producer id that no broker has, or -1 before the first block."""

    next_producer_id: int = NO_PRODUCER_IDS

    @property
    def fingerprint(self) -> int:
        """The hash of this section."""
        if self.next_producer_id == NO_PRODUCER_IDS:
            return 0
        return fingerprint("producer ids", self.next_producer_id)


def set_quota(quotas: ClientQuotasImage, record: ClientQuotaRecord, _: int) -> ClientQuotasImage:
    """Apply a ClientQuotaRecord."""
    entity: Entity = tuple(sorted((part.entity_type, part.entity_name) for part in record.entity))
    if record.remove:
        return ClientQuotasImage(quotas.table.remove(entity, record.key))
    return ClientQuotasImage(quotas.table.put(entity, record.key, record.value))


def set_producer_ids(_: ProducerIdsImage, record: ProducerIdsRecord, __: int) -> ProducerIdsImage:
    """Apply a ProducerIdsRecord. Who got the block before is not remembered."""
    return ProducerIdsImage(record.next_producer_id)


QUOTA_FOLDS: dict[type, Fold] = {ClientQuotaRecord: set_quota}
PRODUCER_ID_FOLDS: dict[type, Fold] = {ProducerIdsRecord: set_producer_ids}
