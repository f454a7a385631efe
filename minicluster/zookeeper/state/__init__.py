"""What a ZooKeeper server holds: the tree of znodes, the sessions and the watches."""
