"""Controllers, topics, reassignments and notifications in ZooKeeper's log."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View

VIEWS = (
    View(name="znode_controller_steps", sql="select * from znode_controllers"),
    View(name="znode_topic_steps", sql="select * from znode_topics where kind = 'Write'"),
    View(name="znode_assignment_steps", sql="select * from znode_assignments where kind = 'Write'"),
    View(name="znode_waits", sql="select *, until_ms - ms as waited_ms from znode_notices"),
)

RULES = (
    Rule(
        id="K1",
        title="A controller epoch has one writer",
        statement="/controller is created in one transaction with the next epoch.",
        source="KAFKA-6082; KafkaZkClient.registerControllerAndIncrementControllerEpoch",
        evidence=Evidence.ZNODES,
        online=True,
        checks=(
            Check(
                view="znode_controller_steps",
                when="kind = 'Controller'",
                bad="not together",
                message="broker {broker} created /controller without an epoch",
                topic="null",
                partition="null",
                broker="broker",
            ),
            Check(
                view="znode_controller_steps",
                when="kind = 'Epoch'",
                bad="not together or epoch <> p_epoch + 1",
                message="controller epoch {number} after {old}, or without /controller",
                topic="null",
                partition="null",
                old="array(p_epoch)",
                number="epoch",
            ),
        ),
    ),
    Rule(
        id="K9",
        title="Topic ids do not change",
        statement="The id of a topic stays as long as the topic.",
        source="KIP-516, KAFKA-14190; ControllerContext.addTopicId",
        evidence=Evidence.ZNODES,
        online=True,
        checks=(
            Check(
                view="znode_topic_steps",
                when="not is_new",
                bad="p_topic_id is not null and not (topic_id <=> p_topic_id)",
                message="{topic} has another id than before",
                partition="null",
            ),
        ),
    ),
    Rule(
        id="K12",
        title="A reassignment ends with its replicas in sync",
        statement="A reassignment ends when all replicas that it adds are in the ISR.",
        source="KIP-455; KafkaController.isReassignmentComplete",
        evidence=Evidence.ZNODES,
        online=True,
        checks=(
            Check(
                view="znode_assignment_steps",
                when="size(p_adding) > 0 and size(adding) = 0 and size(removing) = 0 "
                "and isr is not null",
                bad="size(array_except(array_intersect(p_adding, replicas), isr)) > 0",
                message="the ISR {new} lacks some of the added {old}",
                old="p_adding",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="K13",
        title="The controller is notified of a leader's ISR",
        statement="Below IBP 2.7-IV2 the controller is notified in 70 s of every ISR that a leader "
        "has written.",
        source="KIP-497; ZkAlterPartitionManager",
        evidence=Evidence.ZNODES,
        online=True,
        checks=(
            Check(
                view="znode_waits",
                when="true",
                bad="waited_ms > 70000",
                message="the write of zxid {offset} was not notified of in {number} ms",
                number="waited_ms",
            ),
        ),
    ),
)
