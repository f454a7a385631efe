"""The state of a ZooKeeper server: the tree of znodes, the sessions and the watches."""
