"""This project's group coordinator, with the commands of Kafka's (``steps``)."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from minicluster.configs.effective import BrokerLevels
from minicluster.coordinator.group.config import GroupCoordinatorConfig
from minicluster.coordinator.group.machine import GroupCoordinatorMachine
from minicluster.coordinator.group.request_context import ClientContext
from minicluster.coordinator.runtime.internal_log import EndTxnMarker, Producer, Verified
from minicluster.effects import Effect
from minicluster.log import Record, RecordBatch
from minicluster.log.batch import TRANSACTIONAL_BIT
from minicluster.metadata.image.configs import GROUP
from minicluster.metadata.image.delta import DeltaBuilder
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.shared_folds import SharedFolds
from minicluster.protocol import ErrorCode, decode
from minicluster.protocol.api_keys import APIS
from minicluster.protocol.codec import encode
from minicluster.protocol.records import ConfigRecord, VersionedRecord
from minicluster.protocol.records.framing import decode_record
from minicluster.replica.producers.markers import EndTransactionMarker, marker_batch
from minicluster.rules import Rules
from tests.coordinator.driven import DrivenCoordinator
from tests.coordinator.memory_log import Log
from tests.transcripts.groups.steps import Batch, Command, Step

BROKER = 1


class TransactionalLog(Log):
    """A partition in memory that takes transactions as well; all is committed at once."""

    def __init__(self) -> None:
        super().__init__(mark=None)

    def append(
        self,
        partition: int,
        records: Sequence[tuple[bytes, bytes | None]],
        producer: Producer | None,
        now_ms: int,
    ) -> int:
        if producer is None:
            return super().append(partition, records, producer, now_ms)
        batch = RecordBatch.of(
            [Record(i, now_ms, key, value) for i, (key, value) in enumerate(records)],
            leader_epoch=0,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            attributes=TRANSACTIONAL_BIT,
        )
        self.batches.append(batch.with_base(self.end, 0))
        return self.end

    def append_end_txn_marker(self, partition: int, marker: EndTxnMarker, now_ms: int) -> int:
        content = EndTransactionMarker(marker.committed, marker.coordinator_epoch)
        batch = marker_batch(content, marker.producer_id, marker.producer_epoch, now_ms)
        self.batches.append(batch.with_base(self.end, 0))
        return self.end

    def verify(self, partition: int, producer: Producer, done: Verified, now_ms: int) -> None:
        done(ErrorCode.NONE, None, now_ms)


class Ours(DrivenCoordinator):
    """One coordinator of one partition, as Kafka's: its bugs as shipped, the ids that it draws."""

    def __init__(self, config: Mapping[str, str], now_ms: int) -> None:
        super().__init__(now_ms)
        self.config = config
        self.image = MetadataImage.EMPTY
        self.offset = -1
        self.log = TransactionalLog()
        self._versions: dict[int, int] = {}
        self._drawn = 0
        self._leader_epoch = 0
        self._step = Step()
        self._logged = len(self.log.batches)
        self.machine = GroupCoordinatorMachine(
            BROKER,
            GroupCoordinatorConfig.of(BrokerLevels({}, {}, self.config), BROKER),
            self.log,
            new_uuid=self._new_uuid,
            rules=Rules.KAFKA_4_3.as_shipped(),
        )

    def _new_uuid(self) -> uuid.UUID:
        """The next id of Kafka's as well: its draws are counted."""
        self._drawn += 1
        return uuid.UUID(bytes=self._drawn.to_bytes(16, "big"), version=4)

    def do(self, command: Command) -> Step:
        """Perform a command."""
        match command["do"]:
            case "metadata":
                return self._publish(command)
            case "request":
                return self._send(command)
            case "end_txn":
                return self._end_transaction(command)
            case "advance":
                return self._advance(command["ms"])
            case "group_config":
                return self._set_group_config(command)
            case "restart":
                return self._restart()
        raise AssertionError(command)

    def _publish(self, command: Command) -> Step:
        records = [decode_record(base64.b64decode(each)) for each in command["records"]]
        return self._metadata(records, command["offset"])

    def _metadata(self, records: Sequence[VersionedRecord], offset: int) -> Step:
        builder = DeltaBuilder(self.image)
        for run in SharedFolds().runs(self.image, records, self.offset + 1):
            builder.take(run)
        delta = builder.build()
        self.image, self.offset = delta.after, offset
        return self._done(self.machine.on_metadata(delta, offset, self.now_ms))

    def _send(self, command: Command) -> Step:
        token, version = command["token"], command["version"]
        self._versions[token] = version
        body = base64.b64decode(command["body"])
        request = decode(APIS[command["api"]].request, body, version)
        context = ClientContext(command["client"])
        return self._done(self.machine.on_request(token, request, version, context, self.now_ms))

    def _end_transaction(self, command: Command) -> Step:
        marker = EndTxnMarker(command["producer_id"], command["epoch"], command["commit"], 0, 2)
        runtime = self.machine.state.runtime
        runtime.complete_transaction(0, marker, lambda *_: None, self.now_ms)
        return self._done(self.machine.end_of_input())

    def _advance(self, ms: int) -> Step:
        self.advance(ms)
        return self._done([])

    def _set_group_config(self, command: Command) -> Step:
        group_id = command["group_id"]
        records = [
            VersionedRecord(
                ConfigRecord(resource_type=GROUP, resource_name=group_id, name=name, value=value), 0
            )
            for name, value in command["config"].items()
        ]
        return self._metadata(records, self.offset)

    def _restart(self) -> Step:
        runtime = self.machine.state.runtime
        self._leader_epoch += 2
        runtime.on_resigned(0, self._leader_epoch - 1, self.now_ms)
        self.perform(self.machine.end_of_input())
        runtime.on_elected(0, self._leader_epoch, self.now_ms)
        self.perform(self.machine.end_of_input())
        return self._advance(0)

    # --- effects ------------------------------------------------------------------------------

    def _done(self, effects: list[Effect]) -> Step:
        self.perform(effects)
        step, self._step = self._step, Step()
        new = self.log.batches[self._logged :]
        self._logged = len(self.log.batches)
        for batch in new:
            rows = tuple((record.key or b"", record.value) for record in batch.records)
            step.batches.append(Batch(batch.producer_id, batch.is_control, rows))
        return step

    def respond(self, token: int, response: Any) -> None:
        version = self._versions.pop(token)
        body = None if response is None else encode(response, version)
        self._step.responses.append((token, body))
