"""Files: uploads, files and URLs in messages, and files in a session's tree."""

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anthropic
from bench.support.sdk.sdk_client import SdkClient
from tests.compat.checks import require_equal
from tests.compat.registry import different, refused, supported

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_MOUNTED = (
    "In the working directory: a relative path, or one below `/workspace/`. Default: below `.footplate/uploads/`."
)
PDF = b"%PDF-1.4\n%%EOF\n"


@supported("files.upload")
@supported("files.upload", "file", note="At most 64 MB, or the operator's limit; a larger file: 413.")
@supported("files.upload", "expires_in_seconds")
@supported("files.retrieve_metadata")
@supported("files.retrieve_metadata", "file_id")
@different("files.download", note="Any file, including uploaded ones.")
@supported("files.download", "file_id")
@supported("files.delete", note="Its bytes are deleted within seconds. Copies in sessions are deleted with them.")
@supported("files.delete", "file_id")
@supported("File", "id", "type", "filename", "mime_type", "size_bytes", "created_at", "expires_at")
@different("File", "downloadable", note="Always true.")
async def a_file_is_uploaded_read_and_deleted(door: SdkClient) -> None:
    content = secrets.token_bytes(100)
    made = await door.call("files.upload", file=("a/b.bin", content), expires_in_seconds=3600)
    require_equal((made.id.split("_")[0], made.type, made.filename), ("file", "file", "b.bin"))
    require_equal((made.mime_type, made.size_bytes), ("application/octet-stream", 100))
    require_equal((made.downloadable, made.scope, made.expires_at is None), (True, None, False))
    require_equal(await door.call("files.retrieve_metadata", made.id), made)
    require_equal(await _read(door, made.id), content)
    require_equal((await door.call("files.delete", made.id)).type, "file_deleted")
    for method in ("files.retrieve_metadata", "files.download", "files.delete"):
        await door.expect_error(anthropic.NotFoundError, method, made.id)
    bad = anthropic.BadRequestError
    await door.expect_error(bad, "files.upload", file=("a", b""), expires_in_seconds=5, field="expires_in_seconds")


@supported("files.list", note="Newest first.")
@supported("files.list", "ids", "limit", "page")
async def files_are_listed(door: SdkClient) -> None:
    made = [(await door.call("files.upload", file=(f"{number}.txt", b"x"))).id for number in range(3)]
    require_equal(len((await door.call("files.list", limit=2)).data), 2)
    walked = [file.id for file in await door.list_all("files.list", limit=2)]  # other probes upload files meanwhile
    require_equal([file_id for file_id in walked if file_id in made], made[::-1])
    require_equal([file.id for file in await door.list_all("files.list", ids=[made[0], "file_none"])], [made[0]])
    require_equal(await door.list_all("files.list", scope_id="sesn_1"), [])
    await door.expect_error(anthropic.BadRequestError, "files.list", ids=made, limit=1, field="ids")


@supported("files.list", "scope_id", note="The files that the session's agent has left in `/mnt/session/outputs`.")
@supported("File", "scope", note="The session of an output; null for an uploaded file.")
async def outputs_of_a_session_are_listed_and_downloaded(door: SdkClient) -> None:
    session = await door.session()
    await door.run_turn(session.id, "probe-outputs")
    files = {file.filename: file for file in await door.list_all("files.list", scope_id=session.id, limit=1)}
    require_equal({*files}, {"report.csv", "sub/b"})
    report = files["report.csv"]
    require_equal((report.scope.type, report.scope.id, report.downloadable), ("session", session.id, True))
    require_equal((report.mime_type, report.size_bytes), ("text/csv", 2))
    require_equal(await _read(door, report.id), b"1\n")
    await door.run_turn(session.id, "probe-outputs-changed")
    (changed,) = await door.list_all("files.list", scope_id=session.id)
    require_equal((changed.filename, await _read(door, changed.id)), ("report.csv", b"3\n"))
    await door.expect_error(anthropic.NotFoundError, "files.download", report.id)
    await door.call("sessions.delete", session.id)
    await door.expect_error(anthropic.NotFoundError, "files.retrieve_metadata", changed.id)


@supported("FileImageSourceParam", "file_id")
@supported("FileDocumentSourceParam", "file_id")
@supported("URLImageSourceParam", "url", note="Fetched by the worker, from public or allowed addresses.")
@supported("URLDocumentSourceParam", "url", note="As for images.")
async def a_message_with_files_and_urls(door: SdkClient) -> None:
    session = await door.session()
    image = await door.call("files.upload", file=("a.png", PNG, "image/png"))
    document = await door.call("files.upload", file=("a.txt", b"of a file", "text/plain"))
    async with serve_pages({"/b.png": (PNG, "image/png"), "/b.pdf": (PDF, "application/pdf")}) as base:
        blocks: list[Any] = [
            {"type": "text", "text": "[[script:probe-hello]]"},
            {"type": "image", "source": {"type": "file", "file_id": image.id}},
            {"type": "document", "source": {"type": "file", "file_id": document.id}},
            {"type": "image", "source": {"type": "url", "url": f"{base}/b.png"}},
            {"type": "document", "source": {"type": "url", "url": f"{base}/b.pdf"}},
        ]
        event: Any = {"type": "user.message", "content": blocks}
        send = lambda: door.call("sessions.events.send", session.id, events=[event])  # noqa: E731
        received = await door.watch(session.id, send)
    require_equal(
        [event.type for event in received if event.type in {"agent.message", "session.error"}], ["agent.message"]
    )
    nowhere: Any = {"type": "document", "source": {"type": "file", "file_id": "file_none"}}
    none: Any = {"type": "user.message", "content": [nowhere]}
    await door.expect_error(anthropic.NotFoundError, "sessions.events.send", session.id, events=[none])


@supported("sessions.create", "resources", note="Files only; a repository is a project of the session (`project_ids`).")
@supported("FileResourceParams", "file_id")
@different("FileResourceParams", "mount_path", note=_MOUNTED)
@refused("GitHubRepositoryResourceParams", note="Create a project from its URL and list it in `project_ids`.")
@refused("MemoryStoreResourceParam")
@supported("sessions.resources.add", note="Takes effect in the session's next turn.")
@supported("sessions.resources.add", "session_id", "type", "file_id")
@different("sessions.resources.add", "mount_path", note=_MOUNTED)
@supported("sessions.resources.list")
@supported("sessions.resources.list", "session_id", "limit", "page")
@supported("sessions.resources.retrieve")
@supported("sessions.resources.retrieve", "resource_id", "session_id")
@supported("sessions.resources.delete", note="A file that is already in the tree stays there.")
@supported("sessions.resources.delete", "resource_id", "session_id")
@refused("sessions.resources.update", note="A file has no token.")
async def files_are_mounted_in_a_sessions_tree(door: SdkClient) -> None:
    one = await door.call("files.upload", file=("one.txt", b"hello"))
    two = await door.call("files.upload", file=("two.txt", b"there"))
    session = await door.session(resources=[{"type": "file", "file_id": one.id, "mount_path": "given/one.txt"}])
    added = await door.call("sessions.resources.add", session.id, type="file", file_id=two.id)
    require_equal(added.mount_path, f".footplate/uploads/{two.id}/two.txt")
    first = (await door.call("sessions.retrieve", session.id)).resources[0]
    listed = await door.list_all("sessions.resources.list", session.id, limit=1)
    require_equal([one.id for one in listed], [first.id, added.id])
    received = await door.run_turn(session.id, "probe-given")
    outputs = [block.text for event in received if event.type == "agent.tool_result" for block in event.content]
    require_equal([text.split() for text in outputs], [["hellothere"]])
    require_equal(await door.call("sessions.resources.retrieve", added.id, session_id=session.id), added)
    gone = await door.call("sessions.resources.delete", added.id, session_id=session.id)
    require_equal(gone.type, "session_resource_deleted")
    bad = anthropic.BadRequestError
    for fields, field in (
        ({"type": "file", "file_id": one.id, "mount_path": "/etc/x"}, "mount_path"),
        ({"type": "memory_store", "file_id": one.id}, "type"),
    ):
        await door.expect_error(bad, "sessions.resources.add", session.id, field=field, **fields)
    for resource in (
        {"type": "github_repository", "url": "https://example.com/x", "authorization_token": "t"},
        {"type": "memory_store", "memory_store_id": "memstore_1"},
    ):
        await door.expect_error(bad, "sessions.create", agent="a", environment_id="e", resources=[resource],
                           field="resources.0.type")  # fmt: skip
    await door.expect_error(
        bad, "sessions.resources.update", first.id, session_id=session.id, authorization_token="t",
        field="authorization_token",
    )  # fmt: skip


async def _read(door: SdkClient, file_id: str) -> bytes:
    response = await door.call("files.download", file_id)
    content: bytes = response.read() if door.kind == "sync" else await response.read()
    return content


@asynccontextmanager
async def serve_pages(pages: dict[str, tuple[bytes, str]]) -> AsyncIterator[str]:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        content, kind = pages[path]
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\nconnection: close\r\n" % kind.encode())
        writer.write(b"content-length: %d\r\n\r\n%s" % (len(content), content))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
