"""The checks of a scenario before anything is played.

limits                    the most of everything: sizes, counts, times
selectors_and_conditions  nodes that a selector can select, conditions that can hold
impossible_steps          steps that a cluster of the file's shape can never perform
names_that_exist          nodes, topics and partitions to which steps refer
whole_file                every mistake of a file at once, each with its line
"""
