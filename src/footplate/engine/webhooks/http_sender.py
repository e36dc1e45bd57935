"""Sends one webhook by HTTP, signed according to Standard Webhooks, to an address that was checked. Also sends the
requests of notifications, which are signed otherwise.

A tenant chooses the URL, and the worker is inside the operator's network. The host name is therefore resolved once, and
the connection uses an address that the policy allows. Redirects are not followed, and the request contains nothing of
the worker's environment. The body of the response is not read.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from functools import cached_property
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from typing import Final

import httpx2
from standardwebhooks import Webhook

from footplate.domain.errors import InvalidRequest
from footplate.domain.organisations.webhooks import AttemptResult, WebhookAccess
from footplate.harness import address_check

_CONNECT_SECONDS: Final = 10.0
_MAX_ERROR_CHARS: Final = 300
_HEADERS: Final = {
    "accept-encoding": "identity",
    "user-agent": f"Footplate/{version('footplate')}",
}


class WebhookSender:
    def __init__(self, access: WebhookAccess, *, max_seconds: float, tls: ssl.SSLContext | None = None) -> None:
        """`tls`: certificate authorities to use instead of the default ones."""
        self._access = access
        self._max_seconds = max_seconds
        self._tls = tls

    @cached_property
    def _client(self) -> httpx2.AsyncClient:
        """Created at its first use. It keeps no connections: those of two hosts with one address must not be mixed
        up.
        """
        return httpx2.AsyncClient(
            verify=self._tls or True,
            trust_env=False,
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            limits=httpx2.Limits(max_connections=200, max_keepalive_connections=0),
            timeout=httpx2.Timeout(self._max_seconds, connect=min(_CONNECT_SECONDS, self._max_seconds)),
        )

    async def aclose(self) -> None:
        if "_client" in self.__dict__:
            await self._client.aclose()

    async def send(self, url: str, message_id: str, body: str, secrets: Sequence[str]) -> AttemptResult:
        """Send the body once. Every status but 2xx is a failure."""
        headers = {"content-type": "application/json", **_sign(message_id, body, secrets)}
        return await self.post(url, body.encode(), headers)

    async def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> AttemptResult:
        """Send a request with these headers once."""
        try:
            async with asyncio.timeout(self._max_seconds):
                return await self._post(url, content, headers)
        except TimeoutError:
            return AttemptResult(None, f"There was no response within {self._max_seconds:g} s.")
        except InvalidRequest as error:
            return AttemptResult(None, error.message)
        except address_check.UnresolvableHost as error:
            return AttemptResult(None, str(error))
        except address_check.ForbiddenAddress as error:
            return AttemptResult(
                None, f"{error}. The operator of this server can allow it with FOOTPLATE_WEBHOOK_ALLOW."
            )
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            text = str(error)[:_MAX_ERROR_CHARS] or type(error).__name__
            return AttemptResult(None, f"The request failed: {text}.")

    async def _post(self, url: str, content: bytes, headers: Mapping[str, str]) -> AttemptResult:
        self._access.check_url(url)  # again, because the operator may have changed the settings
        parsed = httpx2.URL(url)
        host = parsed.raw_host.decode("ascii")
        port = parsed.port or address_check.PORTS[parsed.scheme]
        headers = {**_HEADERS, **headers, "host": parsed.netloc.decode("ascii")}
        *others, last = [
            self._client.build_request(
                "POST",
                parsed.copy_with(host=str(address), fragment=None),
                content=content,
                headers=headers,
                extensions={"sni_hostname": host},
            )
            for address in await address_check.resolve_allowed_addresses(self._access.addresses, host, port)
        ]
        # The next address is tried only if the connection failed, so that the webhook is not sent twice.
        for request in others:
            with contextlib.suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
                return await self._read_status(request)
        return await self._read_status(last)

    async def _read_status(self, request: httpx2.Request) -> AttemptResult:
        async with aclosing(await self._client.send(request, stream=True)) as response:
            status = response.status_code
        if response.is_success:
            return AttemptResult(status)
        note = " Redirects are not followed." if response.is_redirect else ""
        return AttemptResult(status, f"The endpoint responded with HTTP status {status} instead of 2xx.{note}")


def _sign(message_id: str, body: str, secrets: Sequence[str]) -> dict[str, str]:
    """Return the headers of Standard Webhooks, with a signature by each valid secret."""
    now = datetime.now(UTC)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(Webhook(secret).sign(message_id, now, body) for secret in secrets),
    }
