"""An HTTP server that stores telemetry: traces forwarded by an OTLP collector and reports from a Sentry client."""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from footplate.stack.free_ports import LOOPBACK
from footplate.testing.server.http_server import create_server

Attributes = dict[str, str | int | float | bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    service: str
    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: str
    seconds: float
    failed: bool
    attributes: Attributes
    events: dict[str, Attributes]
    """Attributes of the last event of each name."""

    @property
    def operation(self) -> str:
        return str(self.attributes.get("gen_ai.operation.name", ""))


@dataclass(slots=True)
class TelemetrySink:
    spans: list[Span] = field(default_factory=list)
    reports: list[dict[str, Any]] = field(default_factory=list)
    """Events from Sentry envelopes."""
    raw: list[bytes] = field(default_factory=list)
    """All uncompressed request bodies, to search them for content that must not be in them."""
    url: str = ""

    def of_trace(self, trace_id: str) -> list[Span]:
        return [span for span in self.spans if span.trace_id == trace_id]

    async def receive_traces(self, request: Request) -> Response:
        body = await _body(request)
        self.raw.append(body)
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = str(_attributes(group.resource.attributes).get("service.name", ""))
            for scope in group.scope_spans:
                self.spans.extend(_span(service, span) for span in scope.spans)
        response_body = ExportTraceServiceResponse().SerializeToString()
        return Response(response_body, media_type="application/x-protobuf")

    async def receive_envelope(self, request: Request) -> Response:
        body = await _body(request)
        self.raw.append(body)
        _, *items = body.split(b"\n")
        for header, payload in zip(items[::2], items[1::2], strict=False):
            if header and orjson.loads(header).get("type") == "event":
                self.reports.append(orjson.loads(payload))
        return JSONResponse({"id": "0" * 32})

    @property
    def dsn(self) -> str:
        return f"{self.url.replace('://', '://public@')}/1"


@asynccontextmanager
async def open_sink() -> AsyncIterator[TelemetrySink]:
    sink = TelemetrySink()
    app = Starlette(
        routes=[
            Route("/v1/traces", sink.receive_traces, methods=["POST"]),
            Route("/api/1/envelope/", sink.receive_envelope, methods=["POST"]),
        ]
    )
    listener = socket.create_server((LOOPBACK, 0))
    sink.url = f"http://{LOOPBACK}:{listener.getsockname()[1]}"
    running = create_server(app)
    task = asyncio.create_task(running.serve(sockets=[listener]))
    await running.ready.wait()
    try:
        yield sink
    finally:
        running.should_exit = True
        await task


async def _body(request: Request) -> bytes:
    body = await request.body()
    return gzip.decompress(body) if request.headers.get("content-encoding") == "gzip" else body


def _span(service: str, span: trace_pb2.Span) -> Span:
    return Span(
        service=service,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        name=span.name,
        kind=trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
        seconds=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
        failed=span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
        attributes=_attributes(span.attributes),
        events={event.name: _attributes(event.attributes) for event in span.events},
    )


def _attributes(pairs: "Any") -> Attributes:
    return {pair.key: _value(pair) for pair in pairs}


def _value(pair: KeyValue) -> str | int | float | bool:
    kind = pair.value.WhichOneof("value")
    return getattr(pair.value, kind) if kind else ""
