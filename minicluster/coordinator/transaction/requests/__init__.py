"""The requests of transactional producers, one module each."""
