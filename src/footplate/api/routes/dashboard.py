"""Serves the built dashboard: its files, and `index.html` for every address that is a page of the application.

The files are public; everything that they show comes from `/v1` with the caller's permissions. Each response has a
strict content security policy. `index.html` gets a new nonce per response, for the style elements that libraries create
while the page runs. Style attributes are allowed, because highlighted code needs them: they run no code, and the policy
lets them load nothing from elsewhere.
"""

import asyncio
import re
import secrets
from http import HTTPStatus
from importlib.resources import files
from mimetypes import guess_type
from pathlib import Path
from typing import Final

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

DIRECTORY: Final = Path(str(files("footplate"))) / "dashboard"
"""Where `just web-build` and the build of a wheel put the application."""
NONCE_PLACEHOLDER: Final = b"__FOOTPLATE_NONCE__"
_API_ROOTS: Final = frozenset({"v1", "livez", "readyz", "openapi.json"})
_INDEX: Final = "index.html"
_HASHED: Final = "assets/"
"""Names below this folder contain a hash of the content."""
_ENCODINGS: Final = (("br", ".br"), ("gzip", ".gz"))
"""The build stores each file in these encodings too. The best comes first."""
_ZERO_WEIGHT: Final = re.compile(r"q=0(\.0*)?")
_MEDIA_TYPES: Final = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
    ".wasm": "application/wasm",
}
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; style-src-attr 'unsafe-inline'; "
    "connect-src 'self'; font-src 'self'; img-src 'self' data: blob:; manifest-src 'self'; worker-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_FILE_POLICY: Final = "default-src 'none'; script-src 'self'; connect-src 'self'; frame-ancestors 'none'"
"""Of a file that is opened by itself, and of workers, whose policy is that of their script."""
_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "vary": "accept-encoding",
}
_ABSENT: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Footplate</title></head>
<body>
<h1>The dashboard is not built</h1>
<p>This server runs from a checkout in which the dashboard was not built. Run <code>just web-install web-build</code>
in the checkout, then reload this page. The API and the command line work without it.</p>
</body>
</html>
"""


class DashboardRoute(Route):
    """Matches GET and HEAD requests for any path outside of the API, so that unknown API paths keep their errors."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"}:
            return Match.NONE, {}
        root = scope["path"].lstrip("/").partition("/")[0]
        if root in _API_ROOTS:
            return Match.NONE, {}
        match, child_scope = super().matches(scope)
        child_scope["route"] = self
        return match, child_scope


def create_dashboard_route(directory: Path = DIRECTORY) -> DashboardRoute:
    """Returns the route. It must be the last one of the application."""

    async def serve_dashboard(request: Request) -> Response:
        name = request.path_params["path"]
        found = await asyncio.to_thread(_read_file, directory, name, request.headers.get("accept-encoding", ""))
        if found is not None and name != _INDEX:
            content, encoding = found
            return _create_file_response(name, content, encoding)
        if not _is_navigation(request, name):
            del request.scope["route"]  # metrics count it like any other unknown path
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return await asyncio.to_thread(_create_page, directory)

    return DashboardRoute("/{path:path}", serve_dashboard, include_in_schema=False)


def _is_navigation(request: Request, name: str) -> bool:
    """Whether a browser opens a page. A missing file of the build, or a request by a program, gets 404 instead."""
    return not name.startswith(_HASHED) and "text/html" in request.headers.get("accept", "")


def _read_file(directory: Path, name: str, accepted: str) -> tuple[bytes, str | None] | None:
    """Returns the content of a file and its encoding. None: there is no such file in the build."""
    path = _resolve_inside(directory, name)
    if path is None:
        return None
    offered = _accepted_encodings(accepted)
    for encoding, suffix in _ENCODINGS:
        compressed = path.with_name(path.name + suffix)
        if encoding in offered and compressed.is_file():
            return compressed.read_bytes(), encoding
    return path.read_bytes(), None


def _accepted_encodings(header: str) -> set[str]:
    """Returns the encodings that the header names, without those with the weight 0."""
    parts = [part.replace(" ", "").lower().partition(";") for part in header.split(",")]
    return {name for name, _, weight in parts if not _ZERO_WEIGHT.fullmatch(weight)}


def _resolve_inside(directory: Path, name: str) -> Path | None:
    parts = name.split("/")
    if not all(parts) or any(part in {".", ".."} or "\\" in part or "\x00" in part for part in parts):
        return None
    try:
        path = directory.joinpath(*parts).resolve()
        return path if path.is_relative_to(directory.resolve()) and path.is_file() else None
    except (OSError, ValueError):  # a name that the file system does not accept
        return None


def _create_file_response(name: str, content: bytes, encoding: str | None) -> Response:
    is_hashed = name.startswith(_HASHED)
    headers = {
        **_HEADERS,
        "content-security-policy": _FILE_POLICY,
        "cache-control": "public, max-age=31536000, immutable" if is_hashed else "no-cache",
    }
    if encoding is not None:
        headers["content-encoding"] = encoding
    media_type = _MEDIA_TYPES.get(Path(name).suffix) or guess_type(name)[0] or "application/octet-stream"
    return Response(content, media_type=media_type, headers=headers)


def _create_page(directory: Path) -> Response:
    nonce = secrets.token_urlsafe(16)
    headers = {**_HEADERS, "content-security-policy": _POLICY.format(nonce=nonce), "cache-control": "no-store"}
    try:
        page = (directory / _INDEX).read_bytes()
    except FileNotFoundError:
        return Response(_ABSENT, status_code=HTTPStatus.SERVICE_UNAVAILABLE, media_type="text/html", headers=headers)
    return Response(page.replace(NONCE_PLACEHOLDER, nonce.encode()), media_type="text/html", headers=headers)
