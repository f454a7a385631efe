"""What a test can do to a cluster; each action is declared in ``minicluster.scenario.actions``."""
