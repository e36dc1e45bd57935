"""Connections to Redis with TLS, and users with limited rights."""

import logging
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from redis.asyncio import Redis
from tests.integration.stack.tls_proxy import Authority, tls_proxy

from footplate.cli.actions import doctor_checks
from footplate.config import Settings
from footplate.domain.errors import Unavailable
from footplate.stack import Stack
from footplate.wiring.shared_components import check_redis


async def test_a_wrong_certificate_is_refused_with_the_setting(
    stack: Stack, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    parts = urlsplit(stack.settings.redis_url)

    async def connect(server: Authority, host: str, *, days: int = 1) -> str:
        """Return the error, or nothing if the connection works."""
        async with tls_proxy(f"{parts.hostname}:{parts.port}", server.issue(host, days=days)) as address:
            port = address.rpartition(":")[2]
            url = f"rediss://:{parts.password}@localhost:{port}/0?ssl_ca_certs={authority.certificate}"
            try:
                await check_redis(Settings(redis_url=url))
            except Unavailable as error:
                assert (await doctor_checks.check_redis(Settings(redis_url=url))).state == "failed"
                return f"{error.message} {error.help_text}"
            assert (await doctor_checks.check_redis(Settings(redis_url=url))).state == "ok"
            return ""

    with caplog.at_level(logging.WARNING):
        assert await connect(authority, "localhost") == ""
    assert "Redis does not respond" not in caplog.text
    for refused, reason in (
        (await connect(other, "localhost"), "unable to get local issuer certificate"),
        (await connect(authority, "localhost", days=-1), "certificate has expired"),
        (await connect(authority, "elsewhere.test"), "Hostname mismatch"),
    ):
        assert reason in refused
        assert "Correct `ssl_ca_certs` or the host in FOOTPLATE_REDIS_URL" in refused


async def test_the_documented_rights_suffice_and_missing_ones_are_named(stack: Stack) -> None:
    parts = urlsplit(stack.settings.redis_url)
    page = (Path(__file__).parents[3] / "docs" / "production.md").read_text()
    rule = page.partition("`ACL SETUSER footplate ")[2].partition("`")[0].replace("PASSWORD", "secret").split()
    settings = Settings(redis_url=f"redis://doctor_test:secret@{parts.hostname}:{parts.port}/0")
    async with Redis.from_url(stack.settings.redis_url) as client:
        admin = cast("Any", client)  # `execute_command` has no types
        try:
            await admin.execute_command("ACL", "SETUSER", "doctor_test", *rule)
            finding = await doctor_checks.check_redis(settings)
            assert finding.state == "ok", finding.detail
            await admin.execute_command("ACL", "SETUSER", "doctor_test", "-publish", "-subscribe", "-xadd")
            finding = await doctor_checks.check_redis(settings)
            assert finding.state == "failed"
            assert "may not run XADD, PUBLISH, SUBSCRIBE on keys" in finding.detail
        finally:
            await admin.execute_command("ACL", "DELUSER", "doctor_test")
