"""Starts and stops the telemetry of a process: metrics, traces and error reports."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Final, Literal

import structlog

from footplate.config import Settings
from footplate.domain.errors import InvalidRequest
from footplate.domain.network.host_and_origin_check import RequestGuard
from footplate.telemetry import error_reports, metrics_server, traces
from footplate.telemetry.metrics_server import MetricsAddress

log = structlog.get_logger(__name__)

Service = Literal["api", "worker"]
API_METRICS_PORT: Final = 8701


@asynccontextmanager
async def running_telemetry(settings: Settings, service: Service) -> AsyncIterator[None]:
    own_version = version("footplate")
    if settings.otlp_endpoint and not settings.otel_sdk_disabled:
        traces.start_tracing(service, own_version)
    if settings.sentry_dsn is not None:
        error_reports.start_sentry(settings.sentry_dsn.get_secret_value(), service, own_version)
    address, token = _metrics_access(settings, service)
    try:
        with metrics_server.serve_metrics(
            address, token, RequestGuard.parse(settings.allowed_hosts, settings.allowed_origins)
        ):
            yield
    finally:
        # In a thread: both wait up to a few seconds for an external server.
        await asyncio.to_thread(_stop_telemetry)


def _metrics_access(settings: Settings, service: Service) -> tuple[MetricsAddress | None, str | None]:
    """Return the address of the metrics server and the token that requests need. No address: metrics are not served,
    for example because no token can be read or created.
    """
    address = metrics_server.parse_address(
        settings.metrics_address, default_port=API_METRICS_PORT if service == "api" else None
    )
    given = settings.metrics_token.get_secret_value() if settings.metrics_token is not None else None
    if address is None:
        return None, None
    try:
        return address, metrics_server.find_token(given, settings.data_dir)
    except OSError as error:
        if address.is_required:
            raise InvalidRequest(
                f"The metrics token cannot be read or created in {settings.data_dir}: {error}.",
                field="FOOTPLATE_METRICS_TOKEN",
                help_text="Set FOOTPLATE_METRICS_TOKEN, or FOOTPLATE_METRICS_ADDRESS=off.",
            ) from error
        log.warning(
            "metrics are not served: the token cannot be read or created",
            action="metrics.not_served",
            reason=str(error),
        )
        return None, None


def _stop_telemetry() -> None:
    traces.stop_tracing()
    error_reports.flush_sentry()
