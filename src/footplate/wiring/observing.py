"""Metrics, traces and reported exceptions of one process, from its start to its end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Final, Literal

from footplate.config import Settings
from footplate.domain.request_guard import RequestGuard
from footplate.telemetry import errors, serving, traces

Service = Literal["api", "worker"]
API_METRICS_PORT: Final = 8701


@asynccontextmanager
async def observed(settings: Settings, service: Service) -> AsyncIterator[None]:
    own = version("footplate")
    if settings.otlp_endpoint and not settings.otel_sdk_disabled:
        traces.start(service, own)
    if settings.sentry_dsn is not None:
        errors.start_sentry(settings.sentry_dsn.get_secret_value(), service, own)
    address = serving.parse(settings.metrics_address, default_port=API_METRICS_PORT if service == "api" else None)
    given = settings.metrics_token.get_secret_value() if settings.metrics_token is not None else None
    token = serving.find_token(given, settings.data_dir) if address is not None else None
    try:
        with serving.served(address, token, RequestGuard.parse(settings.allowed_hosts, settings.allowed_origins)):
            yield
    finally:
        # In a thread: both wait for an answer of somebody else's server, and for no more than a few seconds.
        await asyncio.to_thread(_say_the_last)


def _say_the_last() -> None:
    traces.stop()
    errors.stop()
