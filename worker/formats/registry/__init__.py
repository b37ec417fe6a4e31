"""Documents behind the id of a schema, in the wire format of Confluent's serializers."""
