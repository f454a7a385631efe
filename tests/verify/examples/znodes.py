"""Examples of the rules in `znodes.py`.

``orders-0`` has replicas 1, 2, 3 and leader 1; broker 1 is the controller.
"""

from __future__ import annotations

from minicluster.verify.znodes import (
    a_controller_epoch_has_one_writer,
    a_deposed_controller_writes_no_state,
    a_leader_epoch_has_one_leader,
    a_reassignment_ends_in_sync,
    an_unclean_election_needs_a_dead_isr,
    an_unclean_leader_is_recovering,
    isr_members_are_replicas,
    leader_epochs_rise_by_one,
    only_leaders_add_members,
    only_live_replicas_enter_an_isr,
    the_controller_is_notified,
    the_leader_is_in_the_isr_of_its_znode,
    topic_ids_do_not_change,
)
from tests.verify.examples.example import breaks, keeps
from tests.verify.handwritten.znodes import TOPIC, ZnodeRun


@breaks(a_controller_epoch_has_one_writer)
def k1_bad() -> ZnodeRun:
    """Broker 2 becomes the controller after epoch 1, with epoch 3."""
    return ZnodeRun().elect(2, epoch=3)


@breaks(a_controller_epoch_has_one_writer)
def k1_apart() -> ZnodeRun:
    """Broker 2 creates /controller, and sets /controller_epoch in another transaction."""
    return ZnodeRun().elect(2, together=False)


@keeps(a_controller_epoch_has_one_writer)
def k1_near() -> ZnodeRun:
    """Broker 2 creates /controller and sets /controller_epoch to 2 in one transaction."""
    return ZnodeRun().elect(2).state(bump=1, isr=(1, 2))


@breaks(a_deposed_controller_writes_no_state)
def k2_bad() -> ZnodeRun:
    """Broker 1 writes a state with epoch 1 while broker 2 is the controller of epoch 2."""
    run = ZnodeRun().elect(2)
    run.controller, run.epoch = 1, 1
    return run.state(bump=1, isr=(1, 2))


@keeps(a_deposed_controller_writes_no_state)
def k2_near() -> ZnodeRun:
    """Below IBP 2.7-IV2 leader 1 writes its state with the epoch that it has received."""
    return ZnodeRun("2.6").elect(2).state(by=1, isr=(1, 2), controller_epoch=1)


@breaks(leader_epochs_rise_by_one)
def k3_bad() -> ZnodeRun:
    """The leader epoch of orders-0 goes from 0 to 2."""
    return ZnodeRun().state(bump=2, isr=(1, 2))


@keeps(leader_epochs_rise_by_one)
def k3_near() -> ZnodeRun:
    """A write keeps leader epoch 0, and the next has 1."""
    return ZnodeRun().state(isr=(1, 2)).state(bump=1, leader=2, isr=(2,))


@breaks(a_leader_epoch_has_one_leader)
def k4_bad() -> ZnodeRun:
    """Leader 2 follows leader 1 in leader epoch 0."""
    return ZnodeRun().state(leader=2)


@keeps(a_leader_epoch_has_one_leader)
def k4_near() -> ZnodeRun:
    """Leader 2 follows leader 1 in leader epoch 1."""
    return ZnodeRun().state(leader=2, bump=1)


@breaks(isr_members_are_replicas)
def k5_bad() -> ZnodeRun:
    """The replicas are [1, 2, 3], and a state has ISR [1, 2, 4]."""
    return ZnodeRun().state(isr=(1, 2, 4))


@breaks(isr_members_are_replicas)
def k5_empty() -> ZnodeRun:
    """A state has no ISR member."""
    return ZnodeRun().state(isr=(), leader=-1, bump=1)


@breaks(isr_members_are_replicas)
def k5_twice() -> ZnodeRun:
    """A state has ISR [1, 1]."""
    return ZnodeRun().state(isr=(1, 1))


@keeps(isr_members_are_replicas)
def k5_near() -> ZnodeRun:
    """A reassignment adds replica 4, and a state has ISR [1, 2, 3, 4]."""
    return ZnodeRun().assign((4, 1, 2, 3), (4,)).register(4).state(isr=(1, 2, 3, 4))


@breaks(the_leader_is_in_the_isr_of_its_znode)
def k6_bad() -> ZnodeRun:
    """A state has leader 1 and ISR [2, 3]."""
    return ZnodeRun().state(isr=(2, 3))


@keeps(the_leader_is_in_the_isr_of_its_znode)
def k6_near() -> ZnodeRun:
    """A state has no leader and ISR [2, 3]."""
    return ZnodeRun().state(isr=(2, 3), leader=-1, bump=1)


@breaks(an_unclean_election_needs_a_dead_isr)
def k7_bad() -> ZnodeRun:
    """Broker 2 of ISR [1, 2] is alive, and broker 3 is elected."""
    run = ZnodeRun(isr=(1, 2)).end(1)
    return run.state(leader=3, isr=(3,), bump=1, recovering=1)


@breaks(an_unclean_election_needs_a_dead_isr)
def k7_not_alone() -> ZnodeRun:
    """No member of ISR [1] is alive; broker 3 is elected with ISR [3, 2]."""
    run = ZnodeRun(isr=(1,)).end(1)
    return run.state(leader=3, isr=(3, 2), bump=1, recovering=1)


@breaks(an_unclean_election_needs_a_dead_isr)
def k7_late() -> ZnodeRun:
    """Broker 2 of ISR [1, 2] has been alive for half a minute, and broker 3 is elected."""
    run = ZnodeRun(isr=(1, 2)).elect(3).end(1).end(2).register(2).wait(30_000)
    return run.state(leader=3, isr=(3,), bump=1, recovering=1)


def _unclean() -> ZnodeRun:
    """Broker 3 is elected, and is recovering: no member of ISR [1] is alive."""
    run = ZnodeRun(isr=(1,)).elect(2).end(1)
    return run.state(leader=3, isr=(3,), bump=1, recovering=1)


@keeps(an_unclean_election_needs_a_dead_isr)
def k7_near() -> ZnodeRun:
    """No member of ISR [1] is alive, and broker 3 is elected with ISR [3]."""
    return _unclean()


@keeps(an_unclean_election_needs_a_dead_isr)
def k7_not_noticed() -> ZnodeRun:
    """Broker 2 of ISR [1, 2] has just come back; the controller has not read that, and elects 3."""
    run = ZnodeRun(isr=(1, 2)).elect(3).end(1).end(2).register(2)
    return run.state(leader=3, isr=(3,), bump=1, recovering=1)


@keeps(an_unclean_election_needs_a_dead_isr)
def k7_failed_directory() -> ZnodeRun:
    """The one member of ISR [1] is alive, but has lost a log directory; broker 3 is elected."""
    run = ZnodeRun(isr=(1,)).fail_directory(1)
    return run.state(leader=3, isr=(3,), bump=1, recovering=1)


@keeps(an_unclean_election_needs_a_dead_isr)
def k7_shutting_down() -> ZnodeRun:
    """Leader 3, elected uncleanly, has begun a controlled shutdown; broker 1 is elected."""
    return _unclean().register(1).state(leader=1, isr=(1,), bump=1)


@breaks(an_unclean_leader_is_recovering)
def k8_bad() -> ZnodeRun:
    """Broker 3 is elected uncleanly, and is not recovering."""
    run = ZnodeRun(isr=(1,)).elect(2).end(1)
    return run.state(leader=3, isr=(3,), bump=1)


@breaks(an_unclean_leader_is_recovering)
def k8_ended_by_controller() -> ZnodeRun:
    """Broker 3, elected uncleanly, is recovering, and the controller ends that."""
    return _unclean().state(bump=1, recovering=0)


@keeps(an_unclean_leader_is_recovering)
def k8_near() -> ZnodeRun:
    """Broker 3 stays recovering without a leader, and ends that with its first expansion."""
    run = _unclean().state(leader=-1, bump=1).state(leader=3, bump=1)
    return run.state(isr=(3, 2), recovering=0)


@breaks(topic_ids_do_not_change)
def k9_bad() -> ZnodeRun:
    """The topic is set with another id."""
    return ZnodeRun().assign((1, 2, 3), name="B")


@keeps(topic_ids_do_not_change)
def k9_near() -> ZnodeRun:
    """The topic is deleted, and another one of its name has another id."""
    run = ZnodeRun().next().op("delete", TOPIC, None, by=1)
    return run.assign((1, 2, 3), name="B").assign((1, 2, 3), name="B")


@breaks(only_leaders_add_members)
def k10_bad() -> ZnodeRun:
    """The controller takes the ISR from [1, 2] to [1, 2, 3] in the next leader epoch."""
    return ZnodeRun(isr=(1, 2)).state(isr=(1, 2, 3), bump=1)


@keeps(only_leaders_add_members)
def k10_near() -> ZnodeRun:
    """The ISR goes from [1, 2] to [1, 2, 3] in one leader epoch."""
    return ZnodeRun(isr=(1, 2)).state(isr=(1, 2, 3))


@breaks(only_live_replicas_enter_an_isr)
def k11_bad() -> ZnodeRun:
    """The controller has removed broker 3, which is dead, and the ISR becomes [1, 2, 3] again."""
    return ZnodeRun().end(3).state(isr=(1, 2), bump=1).state(isr=(1, 2, 3))


@breaks(only_live_replicas_enter_an_isr)
def k11_other_controller() -> ZnodeRun:
    """Broker 3 is dead before this controller came, and the ISR becomes [1, 2, 3]."""
    return ZnodeRun(isr=(1, 2)).end(3).elect(2).state(isr=(1, 2, 3))


@keeps(only_live_replicas_enter_an_isr)
def k11_near() -> ZnodeRun:
    """Broker 3 comes back, and the ISR becomes [1, 2, 3]."""
    return ZnodeRun(isr=(1, 2)).end(3).register(3).state(isr=(1, 2, 3))


@keeps(only_live_replicas_enter_an_isr)
def k11_not_noticed() -> ZnodeRun:
    """Broker 3 has just died; the controller has not read that, and the ISR becomes [1, 2, 3]."""
    return ZnodeRun(isr=(1, 2)).end(3).state(isr=(1, 2, 3))


@breaks(a_reassignment_ends_in_sync)
def k12_bad() -> ZnodeRun:
    """A reassignment adds replica 4, and ends with replicas [4, 1, 2] and ISR [1, 2, 3]."""
    return ZnodeRun().assign((4, 1, 2, 3), (4,)).assign((4, 1, 2))


@keeps(a_reassignment_ends_in_sync)
def k12_near() -> ZnodeRun:
    """A reassignment that adds replica 4 is cancelled."""
    return ZnodeRun().assign((4, 1, 2, 3), (4,)).assign((1, 2, 3))


@breaks(the_controller_is_notified)
def k13_bad() -> ZnodeRun:
    """Below IBP 2.7-IV2 leader 1 writes its ISR, and notifies the controller 71 s later."""
    return ZnodeRun("2.6").state(by=1, isr=(1, 2)).wait(71_000).notify(1)


@breaks(the_controller_is_notified)
def k13_at_the_end() -> ZnodeRun:
    """Below IBP 2.7-IV2 leader 1 writes its ISR, and has not notified the controller 71 s later."""
    return ZnodeRun("2.6").state(by=1, isr=(1, 2)).wait(71_000)


@keeps(the_controller_is_notified)
def k13_near() -> ZnodeRun:
    """Below IBP 2.7-IV2 leader 1 writes its ISR, and notifies the controller 69 s later."""
    return ZnodeRun("2.6").state(by=1, isr=(1, 2)).wait(69_000).notify(1)
