"""KIP-704: an unclean leader recovers."""


def test_an_unclean_leader_is_alone_in_the_isr_until_it_has_recovered(mini_cluster):
    orders = mini_cluster.create_topic("orders", replicas=2, min_isr=1)
    leader, lagging = orders[0].replicas
    mini_cluster.cut(lagging, leader, api="Fetch")
    mini_cluster.produce(orders, acks=1)
    mini_cluster.wait_until(lambda: orders[0].isr == (leader,), within="60s")
    mini_cluster.kill(leader)
    mini_cluster.wait_until(lambda: orders[0].leader is None, within="30s")
    mini_cluster.elect(orders[0], "UNCLEAN")
    assert orders[0].is_recovering and orders[0].isr == (lagging,)
    mini_cluster.heal()
    mini_cluster.restart(leader)
    mini_cluster.wait_until(orders[0].fully_in_sync, within="60s")
    assert not orders[0].is_recovering and mini_cluster.verify().valid
