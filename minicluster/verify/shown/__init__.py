"""Views of runs and logs for people: their columns, and their data frames."""
