"""The nodes of a cluster on ZooKeeper: its server, and brokers with their candidate."""
