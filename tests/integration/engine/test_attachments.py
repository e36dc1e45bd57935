"""Attachments of an input as a model receives them, inside a block or as a file, and errors for refused ones."""

import asyncio
import base64
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from tests.unit.engine.fake_resources import CLAIM, NoAttachmentSources

from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.agents.model_connections import find_provider
from footplate.domain.files import attachments
from footplate.domain.files.attachments import Attachment, AttachmentFailed, AttachmentRefused
from footplate.domain.json import JsonObject
from footplate.domain.ports.engine import Claim, OpenEnvironment
from footplate.domain.ports.harness import CommandResult
from footplate.engine.turn.attachments import TurnAttachments
from footplate.testing.scripted_gate import ScriptedGate

CLAUDE = ResolvedConfig(harness="claude", model="claude-opus-5", system="")


@dataclass
class FakeEnvironment:
    """The methods of an environment that are used here."""

    root: str = "/workspace"
    written: dict[str, bytes] = field(default_factory=dict)
    failure: OSError | None = None
    notices: int = 0

    async def ensure_open(self) -> None: ...

    def count_notice(self) -> None:
        self.notices += 1

    async def write(self, path: str, content: bytes) -> None:
        if self.failure is not None:
            raise self.failure
        self.written[path.removeprefix(f"{self.root}/")] = content

    async def run(self, argv: Sequence[str]) -> CommandResult:
        return await asyncio.to_thread(self._run, argv)

    def _run(self, argv: Sequence[str]) -> CommandResult:
        """Runs the command in a real shell, in a directory with the written files."""
        with tempfile.TemporaryDirectory() as directory:
            for path in self.written:
                Path(directory, path).parent.mkdir(parents=True, exist_ok=True)
                Path(directory, path).touch()
            done = subprocess.run(argv, cwd=directory, capture_output=True, check=False)
        return CommandResult(exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr, duration=0)


class FakeSources:
    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.checked: list[str] = []

    async def file_size(self, organisation: str, file_id: str) -> int:
        assert organisation == "org_a"
        return 5 if file_id == "file_1" else 1

    async def load_file(self, organisation: str, file_id: str) -> Attachment:
        assert organisation == "org_a"
        if file_id == "file_9":
            raise AttachmentFailed("'file_9' is gone.", help_text="Upload it again.")
        self.loaded.append(file_id)
        kind = {"file_1": "image/png", "file_2": "application/zip", "file_3": "text/csv"}[file_id]
        return Attachment(b"\xff" if kind == "application/zip" else b"bytes", kind, f"{file_id}.x", file_id)

    async def fetch_url(self, url: str) -> Attachment:
        self.loaded.append(url)
        return Attachment(b"%PDF", "application/pdf", url.rpartition("/")[2])

    async def check_url(self, url: str) -> None:
        self.checked.append(url)
        if "10.0.0.1" in url:
            raise AttachmentFailed("Internal.")


@pytest.fixture
def files() -> FakeEnvironment:
    return FakeEnvironment()


def inputs(
    files: FakeEnvironment, config: ResolvedConfig = CLAUDE, known: FakeSources | None = None
) -> TurnAttachments:
    environment = cast("OpenEnvironment", files)
    return TurnAttachments(
        known or FakeSources(),
        "org_a",
        config,
        environment,
        ScriptedGate(),
        find_provider(config.model, {}),
        files.count_notice,
    )


def block(kind: str, source: JsonObject, **more: Any) -> JsonObject:
    return {"type": kind, "source": source, **more}


def base64_of(data: bytes, media_type: str) -> JsonObject:
    return {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}


async def test_an_inline_attachment_is_a_block_with_its_bytes(files: FakeEnvironment) -> None:
    text: JsonObject = {"type": "text", "text": "Look."}
    found = await inputs(files).resolve_attachments(
        [
            text,
            block("image", {"type": "file", "file_id": "file_1"}),
            block("document", {"type": "url", "url": "https://x/a.pdf"}, title="T", context="C", deliver="inline"),
            block("document", {"type": "file", "file_id": "file_3"}),
            block("image", base64_of(b"x", "image/webp")),
        ]
    )
    assert found == [
        text,
        block("image", base64_of(b"bytes", "image/png")),
        block("document", base64_of(b"%PDF", "application/pdf"), title="T", context="C"),
        block("document", {"type": "text", "media_type": "text/plain", "data": "bytes"}),
        block("image", base64_of(b"x", "image/webp")),
    ]
    assert (files.written, files.notices) == ({}, 0)


async def test_a_file_attachment_is_written_and_announced(files: FakeEnvironment) -> None:
    blocks = [
        block("document", {"type": "file", "file_id": "file_2"}, deliver="file"),
        block("document", base64_of(b"z", "application/zip"), title="../a.zip", context="Unpack it.", deliver="file"),
        block("document", {"type": "text", "media_type": "text/plain", "data": "t"}, deliver="file"),
    ]
    found = await inputs(files).resolve_attachments(blocks)
    first, second, third = files.written
    assert (first, files.written[first]) == (".footplate/uploads/file_2/file_2.x", b"\xff")
    assert second.endswith("/a.zip")
    assert third.endswith("/unnamed.txt")
    texts = [str(one["text"]) for one in found]
    assert texts[0] == f"[The user attached a file: /workspace/{first} (application/zip, 1 bytes).]"
    assert texts[1].endswith("\nUnpack it.")
    assert files.notices == 3
    await inputs(files).resolve_attachments(blocks)
    assert len(files.written) == 3, "the same again is at the same place"


@pytest.mark.requirement("K8")
@pytest.mark.parametrize(
    ("harness", "model", "kind", "media_type"),
    [
        ("claude", "claude-opus-5", "document", "application/zip"),
        ("claude", "openai:gpt-5", "document", "image/tiff"),
        ("native", "claude-opus-5", "image", "image/svg+xml"),
        ("native", "openai:gpt-5", "document", "audio/wav"),
        ("native", "google:gemini", "image", "application/pdf"),
    ],
)
async def test_an_unsupported_media_type_is_refused_by_name(
    files: FakeEnvironment, harness: str, model: str, kind: str, media_type: str
) -> None:
    config = replace(CLAUDE, harness=harness, model=model)
    with pytest.raises(AttachmentRefused) as caught:
        await inputs(files, config).resolve_attachments([block(kind, base64_of(b"x", media_type))])
    assert model in caught.value.message
    assert media_type in caught.value.message
    assert "deliver: file" in caught.value.help_text
    assert files.written == {}, "never a file instead"


@pytest.mark.requirement("K8")
async def test_a_file_is_delivered_as_a_file_unless_its_content_is_requested(files: FakeEnvironment) -> None:
    """Images and documents are blocks of the reference API, which are for the model."""
    image = base64_of(b"x", "image/png")
    as_file, requested, as_image = await inputs(files).resolve_attachments(
        [block("file", image, title="a.png"), block("file", image, deliver="inline"), block("image", image)]
    )
    assert "[The user attached a file: /workspace/.footplate/uploads/" in str(as_file.get("text"))
    assert requested == as_image == block("image", image)
    assert len(files.written) == 1


@pytest.mark.requirement("R6")
@pytest.mark.parametrize(
    ("model", "accepted"),
    [
        ("openai-chat:gpt-audio", {"audio/mpeg", "audio/wav"}),
        ("google:gemini-3-pro", {"audio/mpeg", "audio/wav", "audio/flac", "video/mp4"}),
        ("bedrock:nova-pro", {"video/mp4"}),
        ("openai:gpt-5", set()),
        ("mistral:mistral-large", set()),
        ("claude-opus-5", set()),
    ],
)
async def test_audio_and_video_are_sent_to_models_that_accept_them(
    files: FakeEnvironment, model: str, accepted: set[str]
) -> None:
    config = replace(CLAUDE, harness="native", model=model)
    for given in ("audio/mpeg", "audio/x-wav", "audio/flac", "video/mp4"):
        media_type = given.replace("x-wav", "wav")
        sent = inputs(files, config).resolve_attachments([block("file", base64_of(b"x", given), deliver="inline")])
        if media_type in accepted:
            assert await sent == [block("file", base64_of(b"x", media_type))]
        else:
            with pytest.raises(AttachmentRefused, match=f"{model}' does not accept {given} inline"):
                await sent
    assert files.written == {}


@pytest.mark.requirement("R6")
async def test_a_url_is_passed_on_to_a_provider_that_fetches_it(files: FakeEnvironment) -> None:
    source: JsonObject = {"type": "url", "url": "https://example.com/a"}
    image, document = block("image", source), block("document", source, title="T")
    known = FakeSources()
    blocks: list[JsonObject] = [{**image, "deliver": "url"}, {**document, "deliver": "url"}]
    assert await inputs(files, known=known).resolve_attachments(blocks) == [image, document]
    assert (known.loaded, known.checked) == ([], ["https://example.com/a"] * 2)
    chat = replace(CLAUDE, harness="native", model="openai-chat:gpt-5")
    with pytest.raises(AttachmentRefused, match="'openai-chat:gpt-5' does not fetch a document from a URL"):
        await inputs(files, chat).resolve_attachments(blocks)
    internal: JsonObject = {"type": "url", "url": "http://10.0.0.1/a"}
    with pytest.raises(AttachmentFailed, match="Internal"):
        await inputs(files).resolve_attachments([block("image", internal, deliver="url")])


async def test_text_that_is_not_utf8_is_refused(files: FakeEnvironment) -> None:
    with pytest.raises(AttachmentRefused, match="text/plain that is not UTF-8"):
        await inputs(files).resolve_attachments([block("document", base64_of(b"\xff", "text/plain"))])


async def test_inline_attachments_have_a_size_limit(files: FakeEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "MAX_INLINE_BYTES", 5)
    one = block("image", base64_of(b"xyz", "image/png"))
    assert await inputs(files).resolve_attachments([one]) == [one]
    with pytest.raises(AttachmentRefused, match="the limit is 5 bytes"):
        await inputs(files).resolve_attachments([one, one])


async def test_an_attachment_that_cannot_be_written_or_loaded_is_an_error(files: FakeEnvironment) -> None:
    files.failure = IsADirectoryError(21, "Is a directory")
    with pytest.raises(AttachmentFailed, match="Is a directory"):
        await inputs(files).resolve_attachments([block("image", {"type": "file", "file_id": "file_1"}, deliver="file")])
    none = TurnAttachments(
        NoAttachmentSources(), "org_a", CLAUDE, cast("OpenEnvironment", files), ScriptedGate(), "anthropic"
    )
    for source in ({"type": "file", "file_id": "f"}, {"type": "url", "url": "https://x"}, {"type": "other"}):
        with pytest.raises(AttachmentFailed):
            await none.resolve_attachments([block("image", cast("JsonObject", source))])
    with pytest.raises(AttachmentFailed, match="base64"):
        await none.resolve_attachments([block("image", {"type": "base64", "media_type": "image/png", "data": "%"})])


async def never(_: Claim) -> datetime | None:
    return None


async def test_missing_files_of_the_session_are_written(files: FakeEnvironment) -> None:
    files.written = {"b": b"the agent's own by now"}
    mounts = [("a b/\u00e9", "file_1"), ("b", "file_2"), ("c", "file_3")]
    resources: list[JsonObject] = [{"mount_path": path, "file_id": file_id} for path, file_id in mounts]
    await inputs(files).write_missing_resources(replace(CLAIM, resources=resources), never)
    assert files.written == {"b": b"the agent's own by now", "a b/\u00e9": b"bytes", "c": b"bytes"}
    await inputs(files).write_missing_resources(CLAIM, never)
    files.written = {}
    files.failure = PermissionError(13, "Permission denied")
    with pytest.raises(AttachmentFailed, match="Permission denied"):
        await inputs(files).write_missing_resources(replace(CLAIM, resources=resources), never)


async def test_steering_reports_a_missing_attachment_and_delivers_the_others(files: FakeEnvironment) -> None:
    text: JsonObject = {"type": "text", "text": "Look."}
    picture = block("image", base64_of(b"x", "image/png"))
    gone = block("image", {"type": "file", "file_id": "file_9"}, title="a.png")
    archive = block("document", base64_of(b"z", "application/zip"))
    found = await inputs(files).resolve_steering([text, gone, picture, archive])
    assert (found[0], found[2]) == (text, picture)
    assert found[1]["text"] == (
        "[An image (a.png) that the user attached here could not be loaded. "
        "Tell the user: 'file_9' is gone. Upload it again.]"
    )
    assert "A document that the user attached here could not be loaded" in str(found[3]["text"])
    assert "does not accept application/zip" in str(found[3]["text"])


async def test_steering_reports_attachments_above_the_size_limit(
    files: FakeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "MAX_INLINE_BYTES", 5)
    one = block("image", base64_of(b"xyz", "image/png"))
    first, second = await inputs(files).resolve_steering([one, one])
    assert first == one
    assert "the limit is 5 bytes" in str(second["text"])


async def test_text_counts_towards_the_limit_and_larger_files_are_not_loaded(
    files: FakeEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attachments, "MAX_INLINE_BYTES", 6)
    known = FakeSources()
    picture = block("image", {"type": "file", "file_id": "file_1"})
    other = block("document", {"type": "url", "url": "https://x/a.pdf"})
    text: JsonObject = {"type": "text", "text": "\u00e9"}
    for blocks in ([text, picture, other], [picture, text, other]):
        with pytest.raises(AttachmentRefused, match=r"has at least 7 bytes .* including text; the limit is 6"):
            await inputs(files, known=known).resolve_attachments(blocks)
    assert known.loaded == ["file_1"], "the first time it was known before"
    with pytest.raises(AttachmentRefused, match="the limit is 6 bytes"):
        await inputs(files).resolve_attachments(
            [block("document", {"type": "text", "media_type": "text/plain", "data": "7 bytes"})]
        )
    assert await inputs(files, known=known).resolve_attachments([picture])


async def test_a_deleted_session_file_fails_a_turn_only_if_no_turn_had_it(files: FakeEnvironment) -> None:
    added = datetime(2026, 1, 2, tzinfo=UTC)
    gone: JsonObject = {
        "id": "sesrsc_1",
        "mount_path": "a",
        "file_id": "file_9",
        "created_at": added.isoformat().replace("+00:00", "Z"),
    }
    there: JsonObject = {**gone, "mount_path": "b", "file_id": "file_1"}
    claim = replace(CLAIM, resources=[gone, there])

    async def after(_: Claim) -> datetime | None:
        return added + timedelta(seconds=1)

    async def before(_: Claim) -> datetime | None:
        return added - timedelta(seconds=1)

    await inputs(files).write_missing_resources(claim, after)
    assert files.written == {"b": b"bytes"}
    for last in (before, never):
        with pytest.raises(AttachmentFailed, match="'file_9' is gone") as caught:
            await inputs(files).write_missing_resources(claim, last)
        assert "DELETE /v1/sessions/sesn_1/resources/sesrsc_1" in caught.value.help_text
    fork = replace(claim, forked_at=added + timedelta(seconds=1))
    (notice,) = await inputs(files).write_missing_resources(fork, never)
    assert "The file a could not be copied from the parent session" in str(notice["text"])
    assert "'file_9' is gone" in str(notice["text"])
    assert await inputs(files).write_missing_resources(fork, after) == []
    with pytest.raises(AttachmentFailed, match="'file_9' is gone"):  # the file was attached to the fork itself
        await inputs(files).write_missing_resources(replace(claim, forked_at=added), never)
    files.written["a"] = b"kept with the tree"
    assert await inputs(files).write_missing_resources(claim, never) == []
