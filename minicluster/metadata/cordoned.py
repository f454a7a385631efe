"""Which log directories of a broker take no new replicas (KIP-1066).

The broker's own dynamic config counts, else the cluster's, else that of its properties file; ``*``
means all directories. A name that is none of the directories of the broker is ignored.

Source:  KIP-1066; AbstractKafkaConfig.cordonedLogDirs, DynamicLogConfig, LogManager.nextLogDirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from minicluster.metadata.image.configs import BROKER, CLUSTER_DEFAULT, CORDONED_LOG_DIRS
from minicluster.metadata.image.metadata_image import MetadataImage

ALL = "*"


def cordoned_directories(
    image: MetadataImage, broker_id: int, names: Mapping[str, UUID], static: str
) -> tuple[UUID, ...] | None:
    """The cordoned directories; None before metadata.version 4.3-IV0, which has none."""
    if not image.metadata_version.cordoned_log_dirs_supported:
        return None
    value = image.configs.value(BROKER, str(broker_id), CORDONED_LOG_DIRS)
    if value is None:
        value = image.configs.value(BROKER, CLUSTER_DEFAULT, CORDONED_LOG_DIRS)
    if value is None:
        value = static
    wanted = [name.strip() for name in value.split(",")]
    return tuple(names[name] for name in names if ALL in wanted or name in wanted)
