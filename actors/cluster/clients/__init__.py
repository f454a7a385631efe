"""The actors of members of groups and of transactional producers."""
