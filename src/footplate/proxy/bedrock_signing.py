"""Signs requests to Amazon Bedrock with AWS Signature Version 4, by the SDK for AWS.

The signature covers the body, so the body must be complete before the request is sent.
"""

from collections.abc import AsyncIterator
from typing import Final

from footplate.domain.ports.harness import Endpoint
from footplate.proxy.hop_by_hop_headers import Headers

_SERVICE: Final = "bedrock"
_MAX_BODY_BYTES: Final = 32 << 20
_SIGNATURE_HEADERS: Final = frozenset({"authorization", "x-amz-date"})


class BodyTooLarge(Exception):
    pass


def default_url(region: str) -> str:
    return f"https://bedrock-runtime.{region}.amazonaws.com"


async def read_body(body: AsyncIterator[bytes] | bytes | None) -> bytes:
    """Raises `BodyTooLarge`."""
    if body is None or isinstance(body, bytes):
        return body or b""
    data = bytearray()
    async for piece in body:
        data += piece
        if len(data) > _MAX_BODY_BYTES:
            raise BodyTooLarge
    return bytes(data)


def sign(endpoint: Endpoint, method: str, url: str, body: bytes) -> Headers:
    """Returns the headers of the signature. Only the host, the time and the body are signed."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    assert endpoint.access_key_id is not None
    assert endpoint.region is not None
    request = AWSRequest(method=method, url=url, data=body)
    SigV4Auth(Credentials(endpoint.access_key_id, endpoint.api_key), _SERVICE, endpoint.region).add_auth(request)
    return [
        (name.lower().encode(), value.encode())
        for name, value in request.headers.items()
        if name.lower() in _SIGNATURE_HEADERS
    ]
