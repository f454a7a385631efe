"""The action that produces records: a count of them, or a load in the background."""

from __future__ import annotations

from typing import cast

from minicluster.actors.cluster.actions.performing import ms, performs
from minicluster.actors.cluster.actions.requests import Requests
from minicluster.actors.cluster.client import Load, ProduceOperation, Producer
from minicluster.durations import LONGEST_MS
from minicluster.scenario.actions import topics as declared
from minicluster.scenario.actions.arguments import Duration, read_duration

WITHIN = "30s"
DELIVERY_WITHIN = "2m"  # delivery.timeout.ms


class RecordActions(Requests):
    """The actions of a producer."""

    @performs(declared.Produce)
    def produce(self, do: declared.Produce) -> list[ProduceOperation]:
        if do.rate is not None:
            return self._start_load(do, do.rate)
        longest: Duration = do.within or (DELIVERY_WITHIN if do.idempotent else WITHIN)
        deadline_ms = self.now_ms + ms(read_duration(longest, "produce: within"))
        target = None if do.to is None else self.ids(do.to)[0]
        operations: list[ProduceOperation] = []
        producer = Producer() if do.idempotent else None
        for _ in range(1 if do.count is None else do.count):
            operation = self.client.new_operation(
                str(do.topic),
                do.partition,
                acks=cast(declared.AcksWord, do.acks),
                deadline_ms=deadline_ms,
                to=target,
                producer=producer,
            )
            if operations:
                operations[-1].then = operation
            operations.append(operation)
        if operations:
            self.client.hear(operations[0])
        self.finish(operations, deadline_ms + 60_000)
        return operations

    def pause_load(self) -> None:
        """Stop every background load."""
        for load in self.loads:
            load.stopped = True
        self.loads.clear()

    def _start_load(self, do: declared.Produce, rate: float) -> list[ProduceOperation]:
        lasting_ms = LONGEST_MS if do.lasting is None else ms(do.lasting)
        load = Load(
            topic=str(do.topic),
            partition=do.partition,
            rate=rate,
            from_ms=self.now_ms,
            until_ms=self.now_ms + lasting_ms,
            acks=cast(declared.AcksWord, do.acks),
        )
        self.loads.append(load)
        self.client.hear(load)
        return load.operations
