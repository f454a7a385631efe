"""The rules: one promise of the protocol each, by subject (``rule.py`` has their form)."""
