"""One turn of a node, by its role (``KafkaRaftClient.pollCurrentState``)."""
