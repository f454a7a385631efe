"""ZooKeeper itself: znodes, sessions, watches and transactions, as a machine and as messages."""
