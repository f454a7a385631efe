"""Dynamic configs of topics, brokers and the cluster.

Source:  ConfigurationsImage, ConfigurationsDelta.
"""

from __future__ import annotations

from msgspec import field

from minicluster.metadata.image.tables import Fold, GroupedTable
from minicluster.protocol.records import ConfigRecord
from minicluster.values import Value

TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
CLIENT_METRICS = 16
GROUP = 32

MIN_ISR = "min.insync.replicas"
CORDONED_LOG_DIRS = "cordoned.log.dirs"

CLUSTER_DEFAULT = ""
"""The resource name of configs that hold for every broker."""

REMOVED_TOPIC_CONFIGS = ("message.format.version", "message.timestamp.difference.max.ms")
"""Configs that 4.0 removed; a log of an older cluster may set them (SupportedConfigChecker)."""

Resource = tuple[int, str]
"""(type, name)"""


class ConfigsImage(Value):
    """The configs of every resource that has any."""

    table: GroupedTable[Resource, str, str] = field(default_factory=lambda: GroupedTable("config"))

    @property
    def fingerprint(self) -> int:
        """The hash of this section."""
        return self.table.fingerprint

    def of(self, resource_type: int, resource_name: str) -> dict[str, str]:
        """One resource's configs by name."""
        return self.table.group((resource_type, resource_name))

    def value(self, resource_type: int, resource_name: str, name: str) -> str | None:
        """One config, or None where it is not set."""
        return self.table.get((resource_type, resource_name), name)

    def resources(self) -> list[Resource]:
        """Every resource with a config, by type and name."""
        return list(self.table)

    def without(self, resource_type: int, resource_name: str) -> ConfigsImage:
        """These configs without one resource's."""
        table = self.table.remove_group((resource_type, resource_name))
        return self if table is self.table else ConfigsImage(table)


def set_config(configs: ConfigsImage, record: ConfigRecord, _: int) -> ConfigsImage:
    """Apply a ConfigRecord; a null value removes the config."""
    if record.resource_type == TOPIC and record.name in REMOVED_TOPIC_CONFIGS:
        return configs
    resource = (record.resource_type, record.resource_name)
    if record.value is None:
        return ConfigsImage(configs.table.remove(resource, record.name))
    return ConfigsImage(configs.table.put(resource, record.name, record.value))


FOLDS: dict[type, Fold] = {ConfigRecord: set_config}
