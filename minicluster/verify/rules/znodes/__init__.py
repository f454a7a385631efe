"""Rules over the transaction log of ZooKeeper; offsets are zxids."""
