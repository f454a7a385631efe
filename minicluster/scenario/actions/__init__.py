"""The actions: what a step of a scenario and a method of ``MiniCluster`` do, declared once.

An action is a class. Its fields are the arguments of the step and, in the same order, of the method
of its name; the first line of its docstring is its line in docs/reference/vocabulary.md. A fault
that lasts is undone by ``lasting`` or by the action that reverses it.
"""
