"""The examples and near misses of the rules, one file for each file of rules."""
