"""The events of the controller on ZooKeeper, by subject."""
