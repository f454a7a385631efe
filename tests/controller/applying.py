"""One record applied to the state of a controller."""

from __future__ import annotations

from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.folded_run import fold_run
from minicluster.protocol.records import VersionedRecord


def apply_record(state: ClusterState, record: VersionedRecord, offset: int) -> None:
    """Fold and apply."""
    state.apply(fold_run(state.image, (record,), offset))
