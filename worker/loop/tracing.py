"""Spans of OpenTelemetry: one for each burst of a stage that has records of a trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from time import time_ns
from typing import Any, TypeAlias

from worker.bus import AnyOutgoing, Header, RecordBatch, each
from worker.closing import Closing
from worker.settings.errors import ConfigurationError

Work: TypeAlias = Callable[[list[AnyOutgoing]], bool]
"""Adds what it writes to the list, and returns whether that was committed."""
Trace: TypeAlias = Callable[[str, Sequence[RecordBatch], Work], bool]
"""Runs the work of a stage on some records in a span, and returns what that returns."""

MOST_LINKS = 128
"""The most links of a span: what SDKs keep by default."""

_HEADER = "traceparent"
_TRACEPARENT = re.compile(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?"
)
"""https://www.w3.org/TR/trace-context/; what follows the flags is of later versions."""
_SAMPLED = 0x01


class Tracing(Closing):
    """Sends spans to the collector that ``OTEL_EXPORTER_OTLP_ENDPOINT`` names, in a thread.

    A collector that is away never holds up a stage: the spans are lost.
    """

    def __init__(self, app: str, instance: str, exporter: Any = None) -> None:  # noqa: ANN401 -- of the SDK, which is an extra
        """Import the SDK, and start the thread. ``exporter`` replaces that for OTLP over HTTP.

        Raises:
            ConfigurationError: the SDK is missing.
        """
        try:
            from opentelemetry import context, trace  # noqa: PLC0415 -- an extra
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
                OTLPSpanExporter,
            )
            from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
            from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
            from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        except ImportError:
            raise ConfigurationError(
                "worker.tracing: got true, which needs more: pip install 'neardup[tracing]'"
            ) from None
        self._trace = trace
        self._root = context.Context()
        named = {"service.name": app, "service.instance.id": instance}
        self._provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("neardup")

    def burst(self, stage: str, batches: Sequence[RecordBatch], work: Work) -> bool:
        """Run a stage's work on some records, and make a span if any of them has a trace.

        The span has links to the traces of what was read, and of what was written: *route* may have
        documents that it hasn't read itself. The span says whether the work was committed, and an
        error in it is recorded.
        """
        began, written, committed = time_ns(), list[AnyOutgoing](), False
        failed: Exception | None = None
        try:
            committed = work(written)
        except Exception as error:
            failed = error
            raise
        finally:
            read = chain.from_iterable(batch.headers or () for batch in batches)
            links = self._links(chain(read, (one.headers for one in each(written))))
            if links:
                self._end(stage, began, batches, links, failed or committed)
        return committed

    def _end(
        self,
        stage: str,
        began: int,
        batches: Sequence[RecordBatch],
        links: Sequence[Any],
        ended: Exception | bool,  # noqa: FBT001 -- no switch: how it ended
    ) -> None:
        """Make the span of a burst that has ended: in which error, or whether it was committed."""
        made = self._trace
        span = self._tracer.start_span(
            stage,
            context=self._root,
            kind=made.SpanKind.CONSUMER,
            links=links,
            start_time=began,
            attributes={
                "messaging.system": "kafka",
                "messaging.batch.message_count": sum(map(len, batches)),
                "neardup.committed": ended is True,
            },
        )
        if batches:
            span.set_attribute("messaging.destination.name", batches[0].place.topic)
        if isinstance(ended, Exception):
            span.record_exception(ended)
            span.set_status(made.StatusCode.ERROR, str(ended))
        span.end()

    def close(self) -> None:
        """Send what is left, and end the thread."""
        self._provider.shutdown()

    def _links(self, headers: Iterable[Sequence[Header]]) -> list[Any]:
        made = self._trace
        links: dict[tuple[int, int], Any] = {}
        for trace_id, span_id, flags in _parents(headers):
            if flags & _SAMPLED:
                where = made.SpanContext(trace_id, span_id, True, made.TraceFlags(flags))  # noqa: FBT003 -- is_remote
                links.setdefault((trace_id, span_id), made.Link(where))
                if len(links) == MOST_LINKS:
                    break
        return list(links.values())


def _parents(records: Iterable[Sequence[Header]]) -> Iterator[tuple[int, int, int]]:
    """Yield the trace, the span and the flags of each record that has them."""
    for headers in records:
        for name, value in headers:
            if name == _HEADER and value is not None:
                found = _TRACEPARENT.fullmatch(value)
                if found is not None:
                    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
                    yield trace_id, span_id, flags
                break
