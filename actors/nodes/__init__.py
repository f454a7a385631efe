"""The actors of a node: controllers, brokers, replica managers, publishers, and their shells."""
