"""A record as no Python client can write it: header names are bytes in Kafka, not text."""

import ctypes
from pathlib import Path
from typing import Final

import confluent_kafka

# Tags of rd_kafka_producev's arguments, see rd_kafka_vtype_t in rdkafka.h.
_END, _TOPIC, _PARTITION, _VALUE, _MSGFLAGS, _HEADERS = (
    ctypes.c_int(tag) for tag in (0, 1, 3, 4, 7, 10)
)
_COPY: Final = ctypes.c_int(2)
_PRODUCER: Final = 0
_FLUSH_MS: Final = 30_000


def produce_raw(
    bootstrap: str, topic: str, partition: int, value: bytes, headers: list[tuple[bytes, bytes]]
) -> None:
    """Write one record with the C library that is inside confluent-kafka's wheel."""
    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    lib = ctypes.CDLL(str(next(folder.glob("librdkafka*.so*"))))
    for function in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_headers_new"):
        getattr(lib, function).restype = ctypes.c_void_p
    error = ctypes.create_string_buffer(512)
    conf = ctypes.c_void_p(lib.rd_kafka_conf_new())
    set_to = lib.rd_kafka_conf_set(
        conf, b"bootstrap.servers", bootstrap.encode(), error, ctypes.c_size_t(512)
    )
    assert set_to == 0, error.value
    handle = ctypes.c_void_p(lib.rd_kafka_new(_PRODUCER, conf, error, ctypes.c_size_t(512)))
    assert handle.value, error.value
    try:
        given = ctypes.c_void_p(lib.rd_kafka_headers_new(ctypes.c_size_t(len(headers))))
        for name, content in headers:
            lib.rd_kafka_header_add(
                given,
                name,
                ctypes.c_ssize_t(len(name)),
                content,
                ctypes.c_ssize_t(len(content)),
            )
        failed = lib.rd_kafka_producev(
            handle,
            _TOPIC, topic.encode(),
            _PARTITION, ctypes.c_int32(partition),
            _MSGFLAGS, _COPY,
            _VALUE, value, ctypes.c_size_t(len(value)),
            _HEADERS, given,
            _END,
        )  # fmt: skip
        assert failed == 0
        assert lib.rd_kafka_flush(handle, ctypes.c_int(_FLUSH_MS)) == 0
    finally:
        lib.rd_kafka_destroy(handle)
