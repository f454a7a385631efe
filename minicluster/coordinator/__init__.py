"""The coordinators of a broker: consumer groups and transactions, on internal topics.

runtime/      shards of a state, each the fold of one partition of an internal topic
group/        classic and consumer groups, and their offsets, on __consumer_offsets
transaction/  transactional ids on __transaction_state, and the markers that end transactions
"""
