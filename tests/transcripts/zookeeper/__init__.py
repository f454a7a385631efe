"""Runs of a real ZooKeeper and real brokers, played against the controller on ZooKeeper."""
