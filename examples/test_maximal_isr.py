"""KIP-497: a slow controller and the maximal ISR."""


def test_nothing_is_acknowledged_until_the_shrink_is_committed(mini_cluster):
    """The leader has proposed a smaller ISR; until the commit it waits for the old one."""
    orders = mini_cluster.create_topic("orders", replicas=3, min_isr=1)
    leader, follower = orders[0].leader, orders[0].followers[0]
    mini_cluster.cut(follower, leader, api="Fetch")
    mini_cluster.hold(leader, mini_cluster.controllers, api="AlterPartition")
    sent = mini_cluster.produce(orders, rate=1, lasting="5s")
    mini_cluster.wait_until(lambda: mini_cluster.held(leader), within="60s")
    assert follower in orders[0].isr and orders[0].high_watermark == 0
    mini_cluster.release(leader)
    mini_cluster.wait_until(lambda: orders[0].high_watermark == len(sent), within="60s")
    assert follower not in orders[0].isr and mini_cluster.verify().valid
