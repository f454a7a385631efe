"""The transaction coordinator: transactional ids, on ``__transaction_state``."""
