"""Clients of a busy cluster in a process of their own: ``traffic SERVERS SECONDS MEMBERS …``.

A group of members, of which one leaves and one joins every few seconds, and producers at a rate.
The result is one line of JSON: records sent and read, and errors by name.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import confluent_kafka

REJOIN_S = 3.0
CLOSE_S = 60.0


def main() -> int:
    servers, seconds, members, producers, rate, protocol = sys.argv[1:]
    print(json.dumps(run(servers, int(seconds), int(members), int(producers), int(rate), protocol)))
    return 0


def run(
    servers: str, seconds: int, members: int, producers: int, rate: int, protocol: str
) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    errors: Counter[str] = Counter()

    def note(error: Any) -> None:
        errors[f"{error.name()}: {error.str()}"[:160]] += 1

    common = {"bootstrap.servers": servers, "error_cb": note, "log_level": 3}

    def delivered(error: Any, _: Any) -> None:
        counts["delivered"] += 1
        if error is not None:
            note(error)

    def member(number: int) -> confluent_kafka.Consumer:
        own = {
            "group.id": "load",
            "client.id": f"member-{number}",
            "auto.offset.reset": "earliest",
            "group.protocol": protocol,
        }
        if protocol == "classic":
            own["session.timeout.ms"] = 10_000
        consumer = confluent_kafka.Consumer({**common, **own})

        def assigned(*_: Any) -> None:
            counts["assignments"] += 1

        consumer.subscribe(["orders"], on_assign=assigned)
        return consumer

    # A member that leaves waits for the others to join again, so the loop must poll them meanwhile.
    pool = ThreadPoolExecutor(members or 1)
    closing: list[Future[None]] = []
    began_s = time.monotonic()
    group = [member(number) for number in range(members)]
    senders = [
        confluent_kafka.Producer({**common, "client.id": f"producer-{number}", "linger.ms": 5})
        for number in range(producers)
    ]
    sent, joined, rejoin_s = 0, members, began_s + 2 * REJOIN_S
    while (passed_s := time.monotonic() - began_s) < seconds:
        due = int(passed_s * rate * producers)
        for number in range(sent, due):
            senders[number % producers].produce("orders", b"x" * 100, on_delivery=delivered)
        sent = max(sent, due)
        for sender in senders:
            sender.poll(0)
        for consumer in group:
            for message in consumer.consume(100, 0):
                if message.error() is None:
                    counts["read"] += 1
                else:
                    note(message.error())
        if members and time.monotonic() > rejoin_s:
            closing.append(pool.submit(group.pop(0).close))
            group.append(member(joined))
            joined += 1
            rejoin_s = time.monotonic() + REJOIN_S
        time.sleep(0.01)
    for sender in senders:
        if sender.flush(60):
            errors["records without a response"] += 1
    closing += [pool.submit(consumer.close) for consumer in group]
    _, open_ = wait(closing, CLOSE_S)
    if open_:
        errors["members that did not close"] += len(open_)
    pool.shutdown(wait=False, cancel_futures=True)
    return {**counts, "sent": sent, "joined": joined, "errors": errors}


if __name__ == "__main__":
    sys.exit(main())
