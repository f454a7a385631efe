"""The markers that end transactions, on their way to the leaders of their partitions."""
