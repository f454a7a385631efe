"""The SQL of the rules over the rows of one run, without a planner.

Spark takes seconds to plan two dozen queries of windows, whatever they read. A run's rows are few,
so its rules are computed in Python, where a query costs milliseconds: the same text gives the same
rows either way. A query is parsed once (``parser``) and compiled once (``expressions``,
``queries``); a table is a list of tuples (``tables``).
"""
