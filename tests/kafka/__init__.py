"""What neardup relies on: the behaviour of brokers and of librdkafka."""
