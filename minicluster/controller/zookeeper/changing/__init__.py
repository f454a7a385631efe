"""How the controller on ZooKeeper changes partitions, replicas and topics."""
