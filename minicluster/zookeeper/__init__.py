"""ZooKeeper as Kafka used it: znodes, sessions, watches and transactions, and Kafka's znodes."""
