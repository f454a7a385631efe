"""The runtimes that drive actors: simulated and threaded."""
