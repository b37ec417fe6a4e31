"""A real Apache Kafka on this machine, for tests and benchmarks; never installed."""
