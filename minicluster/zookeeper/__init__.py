"""Kafka on ZooKeeper, 2.6 to 3.9: the server, znodes, the controller, the broker, the log."""
