"""KIP-841: controlled shutdown hands over and is remembered."""


def test_a_broker_that_shuts_down_hands_over_first_and_leads_nothing_until_it_is_back(mini_cluster):
    orders = mini_cluster.create_topic("orders", partitions=3, replicas=3, min_isr=2)
    broker = orders[0].replicas[0]
    mini_cluster.controlled_shutdown(broker)
    mini_cluster.wait_until(lambda: not broker.is_running, within="30s")
    assert broker.in_controlled_shutdown and broker.is_fenced
    assert all(broker not in partition.isr for partition in orders)
    mini_cluster.restart(broker)
    mini_cluster.wait_until(orders.fully_in_sync, within="60s")
    assert not broker.in_controlled_shutdown
    assert mini_cluster.verify().valid
