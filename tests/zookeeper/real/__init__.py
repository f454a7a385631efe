"""The controller and the brokers on a real ZooKeeper server, through kazoo.

    python -m tests.zookeeper.real fetch        # the jars, with Maven, into a cache directory
    python -m pytest -m zookeeper tests/zookeeper/real

Without Java or without the jars these tests are skipped. ``MINICLUSTER_ZOOKEEPER_JARS`` names
another folder with the jars.
"""
