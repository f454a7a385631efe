"""A broker's or controller's requests to the active controller, and the pause before a retry."""
