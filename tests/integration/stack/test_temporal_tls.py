"""Connections to Temporal with TLS and client certificates. A wrong certificate is refused."""

from pathlib import Path
from typing import Any

from tests.integration.stack.tls_proxy import Authority, tls_proxy

from footplate.config import Settings
from footplate.domain.errors import FootplateError
from footplate.stack import Stack
from footplate.wiring.temporal_client import connect_temporal

HOST = "temporal.test"


async def _connect(address: str, **settings: Any) -> str:
    """Return the error, or nothing if the connection works."""
    try:
        await connect_temporal(Settings(temporal_address=address, **settings))
    except FootplateError as error:
        return f"{error.message} {error.help_text}"
    return ""


async def test_a_wrong_certificate_is_refused_with_the_setting(stack: Stack, tmp_path: Path) -> None:
    authority, target = Authority(tmp_path), stack.settings.temporal_address
    client = authority.issue("worker")
    files = {"temporal_tls_ca": authority.certificate, "temporal_tls_name": HOST}
    mutual = {**files, "temporal_tls_certificate": client.certificate, "temporal_tls_key": client.key}
    async with tls_proxy(target, authority.issue(HOST), clients=authority) as address:
        assert await _connect(address, **mutual) == ""
        assert "closed the connection. If it requires TLS, set FOOTPLATE_TEMPORAL_TLS," in await _connect(address)
        assert "for mutual TLS FOOTPLATE_TEMPORAL_TLS_CERTIFICATE" in await _connect(address, **files)
        assert "another name" in await _connect(address, **{**mutual, "temporal_tls_name": "other.test"})
    async with tls_proxy(target, authority.issue(HOST, days=-1)) as address:
        assert "expired" in await _connect(address, **files)
    async with tls_proxy(target, Authority(tmp_path, "other").issue(HOST)) as address:
        assert "Set FOOTPLATE_TEMPORAL_TLS_CA" in await _connect(address, **files)


async def test_certificate_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    missing, address = tmp_path / "missing.pem", "127.0.0.1:1"
    assert await _connect(address, temporal_tls_ca=missing) == (
        f"FOOTPLATE_TEMPORAL_TLS_CA names the file {missing}, which cannot be read: No such file or directory. "
        "Correct the path or the permissions of the file."
    )
    assert "belong together" in await _connect(address, temporal_tls_key=missing)
