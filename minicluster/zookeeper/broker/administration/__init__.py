"""The requests of administrators on ZooKeeper, decided by the broker that is the controller."""
