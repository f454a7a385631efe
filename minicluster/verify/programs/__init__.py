"""Users' programs inside the simulation: promises that need no assertion of a test."""
