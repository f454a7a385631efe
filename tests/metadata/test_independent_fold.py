"""The fold of nodes and of the judge, beside a second one that shares no step with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image import metadata_image
from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.protocol import records as r
from minicluster.verify.evidence.operations import operations_of
from minicluster.verify.evidence.reading import read_run
from tests.metadata.independent_fold import IndependentFold
from tests.metadata.records import broker, feature, partition, topic, uid, version

LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"
RECORDED = sorted(path.name for path in LOGS.iterdir() if any(path.glob("controller-*")))


def quota(remove: bool) -> r.ClientQuotaRecord:
    entity = (r.ClientQuotaRecord.EntityData(entity_type="user", entity_name=None),)
    return r.ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=5.0, remove=remove)


def config(kind: int, name: str, key: str, value: str | None) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


def change(**given: Any) -> r.PartitionChangeRecord:
    return r.PartitionChangeRecord(topic_id=uid(1), partition_id=0, **given)


def registration(**given: Any) -> r.BrokerRegistrationChangeRecord:
    return r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, **given)


TOKEN = {"owner": "a", "requester": "a", "issue_timestamp": 1, "max_timestamp": 9}
ACL = r.AccessControlEntryRecord(
    id=uid(7), resource_type=2, resource_name="a", pattern_type=3, principal="User:a", host="*",
    operation=2, permission_type=3,
)  # fmt: skip
EVERY_CHANGE: tuple[Any, ...] = (
    version(25),
    feature("group.version", 1),
    feature("group.version", 0),
    broker(1, log_dirs=(uid(1), uid(2)), rack="a"),
    broker(2),
    broker(3),
    r.UnfenceBrokerRecord(id=1, epoch=1),
    r.FenceBrokerRecord(id=1, epoch=1),
    registration(fenced=-1),
    registration(fenced=1),
    registration(in_controlled_shutdown=1),
    registration(log_dirs=(uid(2),)),
    registration(cordoned_log_dirs=(uid(2),)),
    registration(cordoned_log_dirs=()),
    r.UnregisterBrokerRecord(broker_id=3, broker_epoch=1),
    r.RegisterControllerRecord(controller_id=101, incarnation_id=uid(3)),
    topic("orders", 1),
    partition(1),
    partition(1, index=1, eligible_leader_replicas=(4,)),
    change(isr=(1, 2)),
    change(leader=1),
    change(leader=3, isr=(3,), leader_recovery_state=1),
    change(leader_recovery_state=0),
    change(replicas=(1, 2, 3, 4), adding_replicas=(4,), removing_replicas=(1,)),
    change(directories=(uid(1), uid(2), uid(3), uid(4))),
    change(replicas=(2, 3, 4), adding_replicas=(), removing_replicas=()),
    change(eligible_leader_replicas=(1,), last_known_elr=(2,)),
    r.ClearElrRecord(topic_name="orders"),
    change(last_known_elr=(2,)),
    r.ClearElrRecord(topic_name=""),
    config(2, "orders", "retention.ms", "1"),
    config(2, "orders", "retention.ms", "2"),
    config(2, "orders", "min.insync.replicas", "2"),
    config(2, "orders", "min.insync.replicas", None),
    config(4, "", "a", "b"),
    r.RemoveTopicRecord(topic_id=uid(1)),
    quota(False),
    quota(True),
    r.ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1000),
    ACL,
    r.RemoveAccessControlEntryRecord(id=uid(7)),
    r.UserScramCredentialRecord(
        name="a", mechanism=1, salt=b"1", stored_key=b"2", server_key=b"3", iterations=4096
    ),
    r.RemoveUserScramCredentialRecord(name="a", mechanism=1),
    r.DelegationTokenRecord(token_id="t", renewers=("b",), expiration_timestamp=5, **TOKEN),
    r.DelegationTokenRecord(token_id="t", renewers=("b",), expiration_timestamp=6, **TOKEN),
    r.RemoveDelegationTokenRecord(token_id="t"),
)
"""Records of every kind, each of which changes the image that those before it have made."""


@pytest.mark.parametrize("place", range(len(EVERY_CHANGE)))
def test_each_record_has_the_effect_that_the_shared_fold_gives_it(place: int) -> None:
    image, fold = MetadataImage.EMPTY, IndependentFold()
    for record in EVERY_CHANGE[:place]:
        image = apply(image, record)
        fold.apply(record)
    before = fold.digest()
    assert before == image.digest()

    fold.apply(EVERY_CHANGE[place])

    assert fold.digest() == apply(image, EVERY_CHANGE[place]).digest()
    assert fold.digest() != before, "a fold that forgets this record is seen"


def test_every_kind_of_record_is_looked_at() -> None:
    assert {type(record) for record in EVERY_CHANGE} == set(metadata_image._STEPS) - {
        r.ZkMigrationStateRecord
    }


@pytest.mark.parametrize(
    "records",
    [
        (version(99),),
        (topic("a", 1), topic("a", 2)),
        (topic("a", 1), topic("b", 1)),
        (partition(1),),
        (topic("a", 1), change(isr=(1,))),
        (topic("a", 1), partition(1, directories=(uid(1),))),
        (topic("a", 1), partition(1), change(leader_recovery_state=7)),
        (r.ClearElrRecord(topic_name="a"),),
        (r.RemoveTopicRecord(topic_id=uid(1)),),
        (registration(fenced=1),),
        (broker(1), registration(fenced=2)),
        (broker(1, log_dirs=(uid(1),)), broker(2, log_dirs=(uid(1),))),
        (broker(1), r.FenceBrokerRecord(id=1, epoch=2)),
        (ACL, ACL),
        (r.RemoveAccessControlEntryRecord(id=uid(7)),),
        (r.RemoveUserScramCredentialRecord(name="a", mechanism=1),),
        (r.LeaderChangeMessage(leader_id=1),),
    ],
)
def test_a_record_that_does_not_fit_is_refused_by_both(records: tuple[Any, ...]) -> None:
    image, fold = MetadataImage.EMPTY, IndependentFold()
    for record in records[:-1]:
        image = apply(image, record)
        fold.apply(record)
    with pytest.raises(ReplayError):
        apply(image, records[-1])
    with pytest.raises(ReplayError):
        fold.apply(records[-1])


@pytest.mark.parametrize("name", RECORDED)
def test_both_folds_agree_on_what_apache_kafka_wrote(name: str) -> None:
    run = read_run(next((LOGS / name).glob("controller-*")), name)
    records = () if run.start is None else run.start.records
    image, fold = MetadataImage.EMPTY, IndependentFold(records)
    for record in records:
        image = apply(image, record)
    skip_to = 0 if run.start is None else run.start.end_offset
    for operation in operations_of(run.committed):
        for entry in operation.entries:
            if entry.offset >= skip_to:
                image = apply(image, entry.record)
                fold.apply(entry.record)
        assert fold.digest() == image.digest(), operation.end
