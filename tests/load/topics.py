"""Many topics at once, and a first record to each: ``topics SERVERS TOPICS``.

The result is one line of JSON: seconds of each request, records delivered, and errors by name.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from typing import Any

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS, REPLICAS = 10, 3
PER_REQUEST = 500
LIMIT_S = 60


def main() -> int:
    servers, topics = sys.argv[1:]
    print(json.dumps(run(servers, int(topics))))
    return 0


def run(servers: str, topics: int) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    names = [f"many-{number}" for number in range(topics)]
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 3})
    requests_s = []
    for first in range(0, topics, PER_REQUEST):
        began_s = time.monotonic()
        new = [NewTopic(name, PARTITIONS, REPLICAS) for name in names[first : first + PER_REQUEST]]
        for created in admin.create_topics(new, request_timeout=LIMIT_S).values():
            try:
                created.result()
                counts["created"] += 1
            except confluent_kafka.KafkaException as error:
                errors[f"CreateTopics: {error.args[0].name()}"] += 1
        requests_s.append(round(time.monotonic() - began_s, 1))

    def delivered(error: Any, _: Any) -> None:
        if error is None:
            counts["delivered"] += 1
        else:
            errors[f"Produce: {error.name()}"] += 1

    began_s = time.monotonic()
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "log_level": 3})
    for name in names:
        producer.produce(name, b"x", on_delivery=delivered)
        producer.poll(0)
    if producer.flush(2 * LIMIT_S):
        errors["records without a response"] += 1
    produce_s = round(time.monotonic() - began_s, 1)
    return {**counts, "requests_s": requests_s, "produce_s": produce_s, "errors": errors}


if __name__ == "__main__":
    sys.exit(main())
