"""The rules of a cluster on ZooKeeper, judged from ZooKeeper's transaction log."""
