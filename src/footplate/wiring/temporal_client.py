"""Connects to Temporal as the settings say: with TLS, a client certificate or an API key if they name one."""

import asyncio
from pathlib import Path
from typing import Any, Final

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode, TLSConfig

from footplate.config import Settings
from footplate.domain.errors import InvalidRequest, Unavailable
from footplate.stack import temporal_connection

_CONNECT_SECONDS: Final = 30.0
_TLS_FAILURES: Final = {
    "InvalidCertificate(UnknownIssuer": (
        "has a certificate of an unknown authority",
        "Set FOOTPLATE_TEMPORAL_TLS_CA to the certificates of its authority.",
    ),
    "InvalidCertificate(NotValidForName": (
        "has a certificate for another name",
        "Correct FOOTPLATE_TEMPORAL_ADDRESS, or set FOOTPLATE_TEMPORAL_TLS_NAME to the name in the certificate.",
    ),
    "InvalidCertificate(Expired": (
        "has a certificate that has expired",
        "Renew the certificate of the server at FOOTPLATE_TEMPORAL_ADDRESS.",
    ),
    "InvalidCertificate(": (
        "has a certificate that is not valid",
        "Correct the certificate of the server, FOOTPLATE_TEMPORAL_ADDRESS or FOOTPLATE_TEMPORAL_TLS_CA.",
    ),
    "error after connection": (
        "closed the connection",
        "If it requires TLS, set FOOTPLATE_TEMPORAL_TLS, and for mutual TLS FOOTPLATE_TEMPORAL_TLS_CERTIFICATE.",
    ),
}
"""What the client's message contains, what it means, and what to do. The first match counts."""
_REFUSED: Final = (RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.PERMISSION_DENIED)


async def connect_temporal(settings: Settings) -> Client:
    address, namespace = settings.temporal_address, settings.temporal_namespace
    options = _connection_options(settings)
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            client = await temporal_connection.connect_temporal(address, namespace=namespace, **options)
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=namespace))
    except (RuntimeError, OSError, RPCError) as error:
        raise _describe_failure(settings, error) from error
    return client


def _connection_options(settings: Settings) -> dict[str, Any]:
    key = settings.temporal_api_key
    certificate, private_key = settings.temporal_tls_certificate, settings.temporal_tls_key
    if (certificate is None) != (private_key is None):
        raise InvalidRequest(
            "FOOTPLATE_TEMPORAL_TLS_CERTIFICATE and FOOTPLATE_TEMPORAL_TLS_KEY belong together, and only one is set.",
            help_text="Set both, or neither.",
        )
    ca, name = settings.temporal_tls_ca, settings.temporal_tls_name
    if not settings.temporal_tls and not any((key, ca, certificate, name)):
        return {"tls": False}
    tls = TLSConfig(
        server_root_ca_cert=_read("FOOTPLATE_TEMPORAL_TLS_CA", ca),
        domain=name,
        client_cert=_read("FOOTPLATE_TEMPORAL_TLS_CERTIFICATE", certificate),
        client_private_key=_read("FOOTPLATE_TEMPORAL_TLS_KEY", private_key),
    )
    return {"tls": tls, **({} if key is None else {"api_key": key.get_secret_value()})}


def _read(variable: str, path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidRequest(
            f"{variable} names the file {path}, which cannot be read: {error.strerror}.",
            help_text="Correct the path or the permissions of the file.",
        ) from None


def _describe_failure(settings: Settings, error: Exception) -> Unavailable:
    address, namespace = settings.temporal_address, settings.temporal_namespace
    if isinstance(error, RPCError) and error.status == RPCStatusCode.NOT_FOUND:
        return Unavailable(
            f"Temporal at {address} has no namespace {namespace!r}.",
            help_text=f"Create it with `temporal operator namespace create --namespace {namespace}`, or correct "
            "FOOTPLATE_TEMPORAL_NAMESPACE.",
        )
    if isinstance(error, RPCError) and error.status in _REFUSED:
        return Unavailable(
            f"Temporal at {address} refused the access to the namespace {namespace!r}.",
            help_text="Correct FOOTPLATE_TEMPORAL_API_KEY or FOOTPLATE_TEMPORAL_TLS_CERTIFICATE.",
        )
    for mark, (problem, advice) in _TLS_FAILURES.items():
        if mark in str(error):
            return Unavailable(f"Temporal at {address} {problem}.", help_text=advice)
    return Unavailable(
        f"Temporal at {address} does not respond.",
        help_text="Start everything with `footplate dev`, or set FOOTPLATE_TEMPORAL_ADDRESS.",
    )
