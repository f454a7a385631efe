"""KIP-841: a fenced follower stays out of the ISR."""


def test_a_leader_with_old_metadata_cannot_bring_a_fenced_follower_back(mini_cluster):
    """The leader's metadata still has the follower unfenced; the controller refuses it."""
    orders = mini_cluster.create_topic("orders", replicas=3, min_isr=1)
    leader, follower = orders[0].leader, orders[0].followers[0]
    mini_cluster.cut(follower, leader, api="Fetch")
    mini_cluster.produce(orders, acks=1)
    mini_cluster.wait_until(lambda: follower not in orders[0].isr, within="60s")
    mini_cluster.publish_delay(leader, "90s")
    mini_cluster.cut(follower, mini_cluster.controllers)
    mini_cluster.wait_until(lambda: follower.is_fenced, within="20s")
    mini_cluster.heal(follower, leader)
    mini_cluster.run_for("40s")
    assert follower not in orders[0].isr
    assert mini_cluster.verify().rule("A6").looked_at > 0
