"""``MiniCluster`` and its parts."""
