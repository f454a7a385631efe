"""The state in a partition of ``__transaction_state``."""
