"""One file per request that a controller decides, by Kafka's name of the API."""
