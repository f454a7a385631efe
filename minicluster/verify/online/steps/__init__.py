"""Steps of a partition from one state to the next, and what the rules find in them."""
