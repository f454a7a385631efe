"""The state of the controller on ZooKeeper."""
