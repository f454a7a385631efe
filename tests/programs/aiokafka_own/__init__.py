"""aiokafka's own integration tests, played inside the simulation."""
