"""Fetch what the tests start, Kafka first: ``python -m localkafka``. They fetch it otherwise."""

from localkafka.jars import CONNECT, jars, java
from localkafka.prepared import prepared
from localkafka.registry import application

if __name__ == "__main__":
    prepared(java(), jars())
    jars(CONNECT)
    application()
