"""Files through the SDK: uploads, names, access, files in inputs and files in a session's tree."""

import base64
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic, BadRequestError, NotFoundError
from anthropic.types.beta import BetaDeletedFile, BetaFileMetadata
from anthropic.types.beta.sessions import BetaManagedAgentsFileResource

from footplate.api.wire import response_models
from footplate.cli.actions.run import message_content
from footplate.client import AsyncFootplate, ClientError
from footplate.testing.sdk_validation import assert_valid

from .conftest import BASE, Api, make_client

PNG = base64.b64encode(b"\x89PNG").decode()


async def _session(sdk: AsyncAnthropic, **more: Any) -> str:
    agent = await sdk.beta.agents.create(name="a", model="claude-opus-5")
    environment = await sdk.beta.environments.create(name=f"of {agent.id}")
    session = await sdk.beta.sessions.create(agent=agent.id, environment_id=environment.id, **more)
    return session.id


async def test_the_sdk_uploads_lists_reads_and_deletes(sdk: AsyncAnthropic, http: httpx2.AsyncClient) -> None:
    made = await sdk.beta.files.upload(file=("notes.txt", b"hello", "text/plain"))
    assert (made.filename, made.mime_type, made.size_bytes, made.downloadable) == ("notes.txt", "text/plain", 5, True)
    other = await sdk.beta.files.upload(file=("a.pdf", b"%PDF-"), expires_in_seconds=3600)
    assert other.mime_type == "application/pdf"
    assert other.expires_at is not None
    listed = [file.id async for file in sdk.beta.files.list(limit=1)]
    assert listed == [other.id, made.id]
    assert [file.id async for file in sdk.beta.files.list(ids=[made.id, "file_none", made.id])] == [made.id]
    assert [file async for file in sdk.beta.files.list(scope_id="sesn_1")] == []
    assert await sdk.beta.files.retrieve_metadata(made.id) == made
    content = await sdk.beta.files.download(made.id)
    assert await content.read() == b"hello"
    assert (await sdk.beta.files.delete(made.id)).type == "file_deleted"
    with pytest.raises(NotFoundError):
        await sdk.beta.files.download(made.id)
    raw = (await http.get(f"/v1/files/{other.id}")).json()
    assert_valid(BetaFileMetadata, raw)
    response_models.File.model_validate(raw)
    assert_valid(BetaDeletedFile, (await http.delete(f"/v1/files/{other.id}")).json())


@pytest.mark.parametrize(
    ("given", "called"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\docs\\a.txt", "a.txt"),
        ("..", "unnamed.txt"),
        ("é" * 200, "é" * 127),
    ],
)
async def test_only_the_last_part_of_a_path_is_the_filename(sdk: AsyncAnthropic, given: str, called: str) -> None:
    made = await sdk.beta.files.upload(file=(given, b"x", "text/plain"))
    assert made.filename == called


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({}, "content-type"),
        ({"files": {"other": ("a", b"x")}}, "other"),
        ({"files": {"file": (None, b"x")}}, "file"),
        ({"files": {"file": ("a", b"x")}, "data": {"expires_in_seconds": "5"}}, "expires_in_seconds"),
        ({"files": [("file", ("a", b"x")), ("file", ("b", b"y"))]}, "file"),
        ({"content": b"--x\r\nnonsense", "headers": {"content-type": "multipart/form-data; boundary=x"}}, "file"),
        ({"content": b"x", "headers": {"content-type": "multipart/form-data"}}, "file"),
    ],
)
async def test_an_invalid_upload_is_refused_by_field(http: httpx2.AsyncClient, form: Any, field: str) -> None:
    response = await http.post("/v1/files", **form)
    assert (response.status_code, response.json()["error"]["field"]) == (400, field), response.text


async def test_a_file_that_is_too_large_is_refused(api: Api, http: httpx2.AsyncClient) -> None:
    response = await http.post("/v1/files", files={"file": ("a", b"x" * 200_001)})
    assert response.status_code == 413
    assert api.world.files.files == {}


async def test_a_retried_upload_is_one_file(api: Api, http: httpx2.AsyncClient) -> None:
    """Each attempt encodes the form with another boundary."""
    first, second = [
        await http.post("/v1/files", files={"file": ("a", b"x")}, headers={"idempotency-key": "k"}) for _ in range(2)
    ]
    assert first.json() == second.json()
    assert len(api.world.files.files) == 1


async def test_files_of_other_organisations_are_not_found(api: Api, sdk: AsyncAnthropic) -> None:
    mine = (await sdk.beta.files.upload(file=("a", b"x"))).id
    async with make_client(api.app, "secret-b") as stranger:
        for method, path in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
            assert (await stranger.request(method, f"/v1/files/{mine}{path}")).status_code == 404
        assert (await stranger.get("/v1/files")).json()["data"] == []
        assert (await stranger.get("/v1/files", params={"ids[]": mine})).json()["data"] == []


@pytest.mark.requirement("K8")
async def test_an_input_names_files_and_urls(api: Api, sdk: AsyncAnthropic) -> None:
    session_id = await _session(sdk)
    made = await sdk.beta.files.upload(file=("a.png", b"x", "image/png"))
    content: Any = [
        {"type": "text", "text": "Look."},
        {"type": "image", "source": {"type": "file", "file_id": made.id}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}, "deliver": "file"},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/zip", "data": PNG},
            "title": "a.zip",
            "deliver": "file",
        },
        {"type": "file", "source": {"type": "path", "path": "docs/a.md"}},
        {"type": "file", "source": {"type": "base64", "media_type": "audio/mpeg", "data": PNG}, "deliver": "inline"},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}, "deliver": "url"},
    ]
    await sdk.beta.sessions.events.send(session_id, events=[{"type": "user.message", "content": content}])
    assert api.world.inputs[-1].body["content"] == content


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "source": {"type": "url", "url": "file:///etc/passwd"}},
        {"type": "image", "source": {"type": "url", "url": "https:///x"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/zip", "data": PNG}},
        {"type": "document", "source": {"type": "file", "file_id": "x"}, "deliver": "both"},
        {"type": "document", "source": {"type": "path", "path": "a"}, "deliver": "url"},
        {"type": "file", "source": {"type": "url", "url": "https://example.com/a"}, "deliver": "url"},
        {"type": "file", "source": {"type": "path", "path": "/etc/passwd"}},
        {"type": "file", "source": {"type": "path", "path": "a/../../b"}},
        {"type": "file", "source": {"type": "path", "path": "~/.ssh/id_rsa"}},
        {"type": "file", "source": {"type": "path", "path": "./"}},
    ],
)
async def test_an_invalid_attachment_is_refused(sdk: AsyncAnthropic, block: Any) -> None:
    session_id = await _session(sdk)
    with pytest.raises(BadRequestError):
        await sdk.beta.sessions.events.send(session_id, events=[{"type": "user.message", "content": [block]}])


async def test_an_unknown_file_is_refused_at_once(api: Api, sdk: AsyncAnthropic) -> None:
    block: Any = {"type": "document", "source": {"type": "file", "file_id": "file_none"}}
    event: Any = {"type": "user.message", "content": [block]}
    session_id = await _session(sdk)
    with pytest.raises(NotFoundError, match="file_none"):
        await sdk.beta.sessions.events.send(session_id, events=[event])
    with pytest.raises(NotFoundError, match="file_none"):
        await _session(sdk, initial_events=[event])
    assert api.world.inputs == []


async def test_many_urls_are_refused(sdk: AsyncAnthropic) -> None:
    session_id = await _session(sdk)
    block: Any = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    with pytest.raises(BadRequestError, match="21 blocks with a URL"):
        await sdk.beta.sessions.events.send(session_id, events=[{"type": "user.message", "content": [block] * 21}])


async def test_files_are_mounted_in_a_sessions_tree(sdk: AsyncAnthropic, http: httpx2.AsyncClient) -> None:
    one, two, three = [(await sdk.beta.files.upload(file=(f"{name}.txt", b"x"))).id for name in "abc"]
    given: Any = [{"type": "file", "file_id": one}, {"type": "file", "file_id": two, "mount_path": "/workspace/b/b"}]
    session_id = await _session(sdk, resources=given)
    session = await sdk.beta.sessions.retrieve(session_id)
    paths = [resource.mount_path for resource in session.resources if resource.type == "file"]
    assert paths == [f".footplate/uploads/{one}/a.txt", "b/b"]
    added = await sdk.beta.sessions.resources.add(session_id, type="file", file_id=three, mount_path="c")
    listed = [resource async for resource in sdk.beta.sessions.resources.list(session_id, limit=2)]
    assert listed == [*session.resources, added]
    found = await sdk.beta.sessions.resources.retrieve(added.id, session_id=session_id)
    assert found == added
    raw = (await http.get(f"/v1/sessions/{session_id}/resources/{added.id}")).json()
    assert_valid(BetaManagedAgentsFileResource, raw)
    with pytest.raises(BadRequestError, match="authorization_token"):
        await sdk.beta.sessions.resources.update(added.id, session_id=session_id, authorization_token="t")
    gone = await sdk.beta.sessions.resources.delete(added.id, session_id=session_id)
    assert gone.type == "session_resource_deleted"
    with pytest.raises(NotFoundError):
        await sdk.beta.sessions.resources.delete(added.id, session_id=session_id)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a//b", ".git/hooks/x", "a/.GIT", "/workspace/", "a", "a/b"])
async def test_a_mount_path_outside_of_the_tree_or_in_use_is_refused(sdk: AsyncAnthropic, path: str) -> None:
    file_id = (await sdk.beta.files.upload(file=("a", b"x"))).id
    session_id = await _session(sdk, resources=[{"type": "file", "file_id": file_id, "mount_path": "a"}])
    with pytest.raises(BadRequestError, match="mount_path"):
        await sdk.beta.sessions.resources.add(session_id, type="file", file_id=file_id, mount_path=path)


async def test_sessions_and_files_of_other_organisations_are_not_found(api: Api, sdk: AsyncAnthropic) -> None:
    file_id = (await sdk.beta.files.upload(file=("a", b"x"))).id
    session_id = await _session(sdk)
    with pytest.raises(NotFoundError):
        await sdk.beta.sessions.resources.add(session_id, type="file", file_id="file_none")
    async with make_client(api.app, "secret-b") as stranger:
        theirs = (await stranger.post("/v1/files", files={"file": ("b", b"y")})).json()["id"]
        for body in ({"type": "file", "file_id": file_id}, {"type": "file", "file_id": theirs}):
            response = await stranger.post(f"/v1/sessions/{session_id}/resources", json=body)
            assert response.status_code == 404
        assert (await stranger.get(f"/v1/sessions/{session_id}/resources")).status_code == 404
    assert (await sdk.beta.sessions.retrieve(session_id)).resources == []


async def test_footplates_client_uploads_and_attaches_files(api: Api, tmp_path: Path) -> None:
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(api.app))
    async with AsyncFootplate(BASE, "secret-a", http=http) as client:
        made = await client.files.upload("a.pdf", b"%PDF-", expires_in_seconds=3600)
        assert (made.mime_type, made.expires_at is None) == ("application/pdf", False)
        assert [file.id async for file in client.files.list(ids=[made.id])] == [made.id]
        assert b"".join([piece async for piece in client.files.content(made.id)]) == b"%PDF-"
        (tmp_path / "b.png").write_bytes(b"png")
        blocks = await message_content.build_content(
            client,
            "Look.",
            message_content.MessageAttachments(
                files=[made.id, str(tmp_path / "b.png"), "project:docs/a.md"],
                inline=["https://example.com/c.png?x=1", "proj_2:talk.mp3"],
                urls=["https://example.com/d.png?x=1", "https://example.com/e.pdf"],
            ),
            {"visibility": "private"},
        )
        uploaded = blocks[2]["source"]["file_id"]
        assert api.world.files.content[uploaded] == b"png"
        assert (await client.files.retrieve(uploaded)).visibility == "private"
        assert blocks == [
            {"type": "text", "text": "Look."},
            {"type": "file", "source": {"type": "file", "file_id": made.id}, "deliver": "file"},
            {"type": "file", "source": {"type": "file", "file_id": uploaded}, "deliver": "file"},
            {"type": "file", "source": {"type": "path", "path": "docs/a.md"}, "deliver": "file"},
            {"type": "file", "source": {"type": "url", "url": "https://example.com/c.png?x=1"}, "deliver": "inline"},
            {
                "type": "file",
                "source": {"type": "path", "path": "talk.mp3", "project_id": "proj_2"},
                "deliver": "inline",
            },
            {"type": "image", "source": {"type": "url", "url": "https://example.com/d.png?x=1"}, "deliver": "url"},
            {"type": "document", "source": {"type": "url", "url": "https://example.com/e.pdf"}, "deliver": "url"},
        ]
        session = await client.sessions.create(
            agent=(await client.agents.create(name="a", model="claude-opus-5")).id,
            environment_id=(await client.environments.create(name="e")).id,
        )
        await client.events.send(session.id, [{"type": "user.message", "content": blocks}])
        assert api.world.inputs[-1].body["content"] == blocks
        nothing = message_content.MessageAttachments(files=[str(tmp_path / "none")])
        with pytest.raises(ClientError, match="No such file"):
            await message_content.build_content(client, "x", nothing, {})
        assert (await client.files.delete(made.id)).id == made.id
