"""Every API that Kafka 3.9 and 4.3 have, by its key and by its name.

The modules of ``messages`` declare them. Key 74 is ListConfigResources, whose version 0 is the
ListClientMetricsResources of earlier releases.

Source:  org.apache.kafka.common.protocol.ApiKeys.
"""

from __future__ import annotations

from minicluster.protocol import messages  # noqa: F401  (each of its modules declares an API)
from minicluster.protocol.api import Api, declared_apis

APIS: dict[int, Api] = {api.key: api for api in declared_apis()}
BY_NAME: dict[str, Api] = {api.name: api for api in APIS.values()}
