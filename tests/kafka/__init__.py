"""A real Apache Kafka for tests: see `tests.kafka.broker`."""
