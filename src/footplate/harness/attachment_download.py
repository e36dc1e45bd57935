"""Downloads the attachments that a message names by URL, with the address, size and time limits of `web_fetch`.

Redirects are followed. Each host name is resolved once, and the connection uses an address that was checked.
"""

import ssl
from email.message import Message
from urllib.parse import unquote, urlsplit

from footplate.domain.files.attachments import Attachment, AttachmentFailed
from footplate.domain.files.uploaded_files import UNKNOWN_TYPE
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.ports.harness import WebAccess
from footplate.harness.native.tool_failure_error import ToolFailure
from footplate.harness.native.web.download import Downloader


class AttachmentFetcher:
    def __init__(self, access: WebAccess, *, max_bytes: int, tls: ssl.SSLContext | None = None) -> None:
        self._max_bytes = max_bytes
        self._downloads = Downloader(
            AddressPolicy(access.allow),
            max_bytes=max_bytes,
            max_seconds=access.max_seconds,
            tls=tls,
            purpose="URLs in inputs",
        )

    async def fetch(self, url: str) -> Attachment:
        """Downloads the whole file or fails: a model cannot tell a truncated document from a complete one."""
        try:
            download = await self._downloads.download_page(url)
        except ToolFailure as error:
            raise _fetch_failure(url, str(error)) from error
        if download.status not in range(200, 300):
            raise _fetch_failure(url, f"the server responded with {download.status} {download.reason}")
        if download.is_truncated:
            raise _fetch_failure(url, f"it is larger than {self._max_bytes} bytes")
        message = Message()
        message["content-type"] = download.headers.get("content-type") or UNKNOWN_TYPE
        message["content-disposition"] = download.headers.get("content-disposition") or "inline"
        name = message.get_filename() or unquote(urlsplit(download.url).path.rpartition("/")[2])
        return Attachment(download.data, message.get_content_type(), name)

    async def check(self, url: str) -> None:
        """Checks the address of a URL that a model's provider fetches: a model server in the operator's own network
        could reach what agents must not.
        """
        try:
            await self._downloads.check_address(url)
        except ToolFailure as error:
            raise AttachmentFailed(f"The input's URL {url} cannot be passed on: {str(error).rstrip('.')}.") from error


def _fetch_failure(url: str, reason: str) -> AttachmentFailed:
    return AttachmentFailed(
        f"The input's URL {url} could not be fetched: {reason.rstrip('.')}.",
        help_text="Upload the content as a file, or send the message again when the URL is reachable.",
    )
