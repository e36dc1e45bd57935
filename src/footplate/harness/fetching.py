"""What an input names by URL, fetched under the rules of `web_fetch`: where it may lead, how much, how long.

Redirects are followed, each looked up once, checked, and connected to as it was checked (`native/web/download.py`).
"""

import ssl
from email.message import Message
from urllib.parse import unquote, urlsplit

from footplate.domain.addresses import Reach
from footplate.domain.files import UNKNOWN_TYPE
from footplate.domain.parts import Part, PartFailed
from footplate.domain.ports import WebAccess
from footplate.harness.native.failure import ToolFailure
from footplate.harness.native.web.download import Downloads


class Fetcher:
    def __init__(self, access: WebAccess, *, max_bytes: int, tls: ssl.SSLContext | None = None) -> None:
        self._max_bytes = max_bytes
        self._downloads = Downloads(
            Reach(access.allow), max_bytes=max_bytes, max_seconds=access.max_seconds, tls=tls, what="an input's URL"
        )

    async def fetch(self, url: str) -> Part:
        """Whole, or not at all: half a document looks like a whole one."""
        try:
            found = await self._downloads.page(url)
        except ToolFailure as error:
            raise _failed(url, str(error)) from error
        if found.status not in range(200, 300):
            raise _failed(url, f"the server answered {found.status} {found.reason}")
        if found.cut:
            raise _failed(url, f"it is larger than {self._max_bytes} bytes")
        message = Message()
        message["content-type"] = found.headers.get("content-type") or UNKNOWN_TYPE
        message["content-disposition"] = found.headers.get("content-disposition") or "inline"
        name = message.get_filename() or unquote(urlsplit(found.url).path.rpartition("/")[2])
        return Part(found.data, message.get_content_type(), name)


def _failed(url: str, why: str) -> PartFailed:
    return PartFailed(
        f"{url} could not be fetched for the input: {why.rstrip('.')}.",
        help_text="Upload what is there as a file, or send the message again when it can be reached.",
    )
