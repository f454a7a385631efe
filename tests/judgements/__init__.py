"""The judgements on many runs, recorded, so that another form of the judge is compared with them.

    python -m tests.judgements record  --kind chaos --seeds 1-50 --keep FOLDER
    python -m tests.judgements compare --kind examples
    python -m tests.judgements compare --kept FOLDER --driver process

=========  ==========================================================================
kind       subjects
=========  ==========================================================================
examples   the hand-written logs and runs of tests/verify, and damaged run folders
zoo        the stories of docs/reference/zoo.md, each without a fault and with each of its faults
logs       Apache Kafka's logs and recordings of real brokers on ZooKeeper (tests/data)
chaos      what seeds 1 to 60 draw for KRaft
zookeeper  what seeds 1 to 20 draw for brokers on ZooKeeper
=========  ==========================================================================

``tests/data/judgements/<kind>.jsonl`` has one line for each subject (``judgement.py``).
"""
