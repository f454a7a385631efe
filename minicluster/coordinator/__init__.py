"""The coordinators of a broker: consumer groups and transactions, on internal topics.

runtime/   shards of a state, each the fold of one partition of an internal topic
"""
