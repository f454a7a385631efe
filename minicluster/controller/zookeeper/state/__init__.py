"""What the controller on ZooKeeper holds."""
