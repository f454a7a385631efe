"""The metadata image: a frozen value, and ``apply``, the one fold from records to images.

**Invariant:** ``apply`` is the only way in which a record changes state. The image after a prefix
of the log is a function of that prefix: not of its batches, of snapshots on the way, or of the node
(tests/metadata/test_image_properties.py).

Source:  MetadataImage, MetadataDelta.replay, and the replay methods of the controller's managers,
         whose guards also hold here.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, ClassVar

from msgspec import field

from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image import cluster, configs, features, quotas, security, topics
from minicluster.metadata.image.cluster import ClusterImage
from minicluster.metadata.image.configs import TOPIC, ConfigsImage
from minicluster.metadata.image.features import FeaturesImage
from minicluster.metadata.image.quotas import ClientQuotasImage, ProducerIdsImage
from minicluster.metadata.image.security import Acls, DelegationTokens, Scram
from minicluster.metadata.image.tables import Fold, Table, digest_of
from minicluster.metadata.image.topics import TopicsImage
from minicluster.metadata.metadata_version import MINIMUM, MetadataVersion
from minicluster.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    RemoveTopicRecord,
    VersionedRecord,
)
from minicluster.values import Value, replace


class MetadataImage(Value, kw_only=True):
    """The state that a prefix of the metadata log makes."""

    EMPTY: ClassVar[MetadataImage]

    features: FeaturesImage = field(default_factory=FeaturesImage)
    cluster: ClusterImage = field(default_factory=ClusterImage)
    topics: TopicsImage = field(default_factory=TopicsImage)
    configs: ConfigsImage = field(default_factory=ConfigsImage)
    client_quotas: ClientQuotasImage = field(default_factory=ClientQuotasImage)
    producer_ids: ProducerIdsImage = field(default_factory=ProducerIdsImage)
    acls: Acls = field(default_factory=lambda: Table("acl"))
    scram: Scram = field(default_factory=lambda: Table("scram"))
    delegation_tokens: DelegationTokens = field(default_factory=lambda: Table("delegation token"))

    @property
    def metadata_version(self) -> MetadataVersion:
        """The metadata.version; the first of all where no record has set one.

        ``features.require_metadata_version()`` is for those who must not assume.
        """
        return self.features.metadata_version or MINIMUM

    @property
    def is_empty(self) -> bool:
        """No record has left anything."""
        return not any(_fingerprints(self))

    def has_content_of(self, other: MetadataImage) -> bool:
        """Equal by the fingerprints of the sections, whatever their size."""
        return self is other or _fingerprints(self) == _fingerprints(other)

    def digest(self) -> str:
        """A hash of the content: the same for equal images, in every process, by every path."""
        return digest_of(_fingerprints(self))


def apply(image: MetadataImage, record: Any, *, offset: int = -1) -> MetadataImage:
    """The image after one record: the fold that every node, snapshot and checker uses.

    Shapes:  a metadata record, bare or with its version; control records do not come here.
    Units:   offset is the record's own; a broker's registration remembers it.
    Errors:  ReplayError when the record does not fit the image, which is then unchanged.
    """
    if isinstance(record, VersionedRecord):
        record = record.record
    step = _STEPS.get(type(record))
    if step is None:
        if isinstance(record, _WITHOUT_CONTENT):
            return image
        raise ReplayError(f"offset {offset}: {type(record).__name__} is not a metadata record")
    section, fold = step
    before = getattr(image, section)
    try:
        after = fold(before, record, offset)
    except ReplayError as error:
        raise ReplayError(f"offset {offset}: {type(record).__name__}: {error}") from error
    if after is before:
        return image
    if type(record) is RemoveTopicRecord:
        name = image.topics.by_id[record.topic_id].name
        return replace(image, topics=after, configs=image.configs.without(TOPIC, name))
    return replace(image, **{section: after})


def apply_all(
    image: MetadataImage, records: Iterable[Any], *, base_offset: int = 0
) -> MetadataImage:
    """The image after records at consecutive offsets.

    Errors:  ReplayError.
    """
    for offset, record in enumerate(records, start=base_offset):
        image = apply(image, record, offset=offset)
    return image


_WITHOUT_CONTENT = (
    NoOpRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    AbortTransactionRecord,
)
"""Transactions are the loader's business, not the image's."""

_FOLDS_BY_SECTION: dict[str, dict[type, Fold]] = {
    "features": features.FOLDS,
    "cluster": cluster.FOLDS,
    "topics": topics.FOLDS,
    "configs": configs.FOLDS,
    "client_quotas": quotas.QUOTA_FOLDS,
    "producer_ids": quotas.PRODUCER_ID_FOLDS,
    "acls": security.ACL_FOLDS,
    "scram": security.SCRAM_FOLDS,
    "delegation_tokens": security.TOKEN_FOLDS,
}
_fingerprints = attrgetter(*(f"{section}.fingerprint" for section in _FOLDS_BY_SECTION))
_STEPS: dict[type, tuple[str, Fold]] = {
    record: (section, fold)
    for section, folds in _FOLDS_BY_SECTION.items()
    for record, fold in folds.items()
}

MetadataImage.EMPTY = MetadataImage()
