"""The rules: one promise of the protocol each, by subject (``rule.py`` has their form).

``examples/`` has a file of the same name for each: what breaks its rules, and what nearly does.
"""
