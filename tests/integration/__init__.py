"""Workers as processes on a real Kafka: what must hold whatever happens to them."""
