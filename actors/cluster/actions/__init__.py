"""The actions of a test on a cluster, each declared in ``minicluster.scenario.actions``."""
