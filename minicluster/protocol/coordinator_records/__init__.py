"""The records of the group coordinator and of the transaction coordinator, as Kafka writes them."""
