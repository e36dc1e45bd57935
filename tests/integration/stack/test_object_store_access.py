"""An object store with a certificate that does not fit is refused, with the reason and the setting."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.integration.stack.tls_proxy import Authority, tls_proxy

from footplate.config import Settings
from footplate.domain.errors import Unavailable
from footplate.stack import Stack
from footplate.wiring.shared_components import open_objects


async def test_a_wrong_certificate_is_refused_with_the_setting(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    target = urlsplit(stack.settings.redis_url)
    for server, host, days, reason in (
        (other, "localhost", 1, "unable to get local issuer certificate"),
        (authority, "localhost", -1, "certificate has expired"),
        (authority, "elsewhere.test", 1, "Hostname mismatch"),
    ):
        async with tls_proxy(f"{target.hostname}:{target.port}", server.issue(host, days=days)) as address:
            endpoint = f"https://localhost:{address.rpartition(':')[2]}"
            monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
            with pytest.raises(Unavailable) as caught:
                await open_objects(Settings(objects_url="s3://footplate/objects"))
        assert f"The certificate of the object store at {endpoint} is refused: {reason}" in caught.value.message
        assert "AWS_ENDPOINT_URL" in caught.value.help_text
