"""The controller that lived on ZooKeeper, releases 2.6 to 3.9."""
