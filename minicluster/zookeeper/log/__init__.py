"""ZooKeeper's transaction log as rows of tables, for the judge and for people."""
