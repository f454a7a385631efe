"""Users' programs inside the simulated cluster: their event loops, connections, clocks, chance."""
