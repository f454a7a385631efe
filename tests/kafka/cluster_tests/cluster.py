"""The process of one cluster, for one of Apache Kafka's cluster tests.

``python -m tests.kafka.cluster_tests.cluster SHAPE``: SHAPE is what the test asks for, as JSON.
The first line of output has the addresses; then each line ``stop N`` or ``start N`` of the input
is carried out and answered, until the test ends this process.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from minicluster import MiniCluster
from minicluster.actors.listeners.address import ListenAddress
from minicluster.configs.definitions import broker_configs
from minicluster.errors import UserError
from minicluster.metadata.bootstrap import default_features
from minicluster.metadata.metadata_version import MetadataVersion

SHUT_DOWN_WITHIN = "60s"  # a broker that started again before would not have shut down cleanly

# Its versions are the latest, which are for testing only (KafkaClusterTestKit).
OF_TEST_KIT = {
    "unstable.feature.versions.enable": "true",
    "unstable.api.versions.enable": "true",
}

# What a test sets beside Kafka's own configs is for a class that it brings along.
UNSERVED = {
    "authorizer.class.name": "an authorizer",
    "metric.reporters": "reporters of metrics",
    "create.topic.policy.class.name": "a policy of topics",
    "alter.config.policy.class.name": "a policy of configs",
    "remote.log.storage.system.enable": "tiered storage",
    "unstable.api.versions.enable": "versions of APIs that are not stable",
}


def said(**values: object) -> None:
    """One line for the test."""
    print(json.dumps(values), flush=True)


def unserved(config: Mapping[str, str]) -> str | None:
    """What this project does not serve and the test sets, None for a test that can be played."""
    for name, what in UNSERVED.items():
        if config.get(name, "false") not in ("false", ""):
            return f"{what} ({name})"
    return None


def known(config: Mapping[str, str]) -> dict[str, str]:
    """The configs of Kafka's, without those of plugins."""
    return {name: value for name, value in config.items() if name in broker_configs().keys}


def cluster_of(shape: Mapping[str, Any]) -> MiniCluster:
    """The cluster of a test; features that it does not name have the version's default."""
    version = MetadataVersion.parse(shape["metadata_version"])
    features = {**default_features(version), **shape["features"]}
    kraft_version = features.pop("kraft.version", 0)
    return MiniCluster(
        broker_ids=shape["broker_ids"],
        controller_ids=shape["controller_ids"],
        config={**OF_TEST_KIT, **known(shape["config"]), "kraft.version": kraft_version},
        node_configs={int(n): known(own) for n, own in shape["node_configs"].items()},
        metadata_version=shape["metadata_version"],
        features=features,
        listeners=ListenAddress(advertised="localhost"),
        runtime="threaded",
    )


def main(text: str) -> None:
    """Serve until the input ends."""
    warnings.simplefilter("ignore")
    shape = json.loads(text)
    left_out = unserved(shape["config"])
    if left_out is not None:
        said(left_out=left_out)
        return
    try:
        cluster = cluster_of(shape).start()
    except UserError as error:
        said(error=str(error))
        return
    said(
        brokers=cluster.bootstrap_servers,
        controllers=cluster.bootstrap_controllers,
        cluster_id=cluster.cluster_id,
    )
    for line in sys.stdin:
        what, node_id = line.split()
        node = cluster.node(int(node_id))
        if what == "stop":
            cluster.controlled_shutdown(node)
            cluster.wait_until(lambda node=node: not node.is_running, within=SHUT_DOWN_WITHIN)
        else:
            cluster.restart(node)
        said(done=line.strip())


if __name__ == "__main__":
    main(sys.argv[1])
