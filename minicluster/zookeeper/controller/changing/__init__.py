"""Changes of partitions, replicas and topics by the controller on ZooKeeper."""
