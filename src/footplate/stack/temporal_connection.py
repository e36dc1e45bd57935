"""Connects a Temporal client to a server at `host:port`, or to the Temporal server that Footplate started, at a unix
socket (`unix:/path`).
"""

import logging
from functools import cache
from typing import Any, Final

from temporalio.client import Client, HttpConnectProxyConfig
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

UNIX_PREFIX: Final = "unix:"
_IGNORED_TARGET: Final = "temporal:7233"
"""The target that a client names in its CONNECT request. The socket ignores it: there is only one server behind it."""


async def connect_temporal(address: str, **options: Any) -> Client:
    if not address.startswith(UNIX_PREFIX):
        return await Client.connect(address, runtime=_runtime(), **options)
    proxy = HttpConnectProxyConfig(target_host=address)
    return await Client.connect(_IGNORED_TARGET, runtime=_runtime(), http_connect_proxy_config=proxy, **options)


@cache
def _runtime() -> Runtime:
    """The client's runtime, created once per process. It sends log lines to Python's logging, not to the terminal."""
    forwarding = LogForwardingConfig(logger=logging.getLogger("temporal"), append_target_to_name=False)
    filters = TelemetryFilter(core_level="WARN", other_level="ERROR")
    # The bridge would warn at each connection through a socket that it does no load balancing.
    log_filter = f"{filters.formatted()},temporal_sdk_bridge=ERROR"
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=log_filter, forwarding=forwarding)))
