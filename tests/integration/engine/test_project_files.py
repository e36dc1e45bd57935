"""Files of a project that a message names by path: found and read as a program of the agent would, never outside."""

import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.engine.fake_resources import NoAttachmentSources

from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.agents.model_connections import find_provider
from footplate.domain.files.attachments import AttachmentFailed, AttachmentRefused
from footplate.domain.json import JsonObject
from footplate.domain.policy.permissions import PermissionOutcome
from footplate.engine.turn.attachments import TurnAttachments
from footplate.environments.unsandboxed_environment import UnsandboxedEnvironment
from footplate.lease_clock import lease_clock
from footplate.testing.scripted_gate import ScriptedGate

PNG = b"\x89PNG\r\n\x1a\n"
CONFIG = ResolvedConfig(harness="claude", model="claude-opus-5", system="")


@pytest.fixture
async def environment(tmp_path: Path) -> AsyncIterator[UnsandboxedEnvironment]:
    root, other = tmp_path / "tree", tmp_path / "other"
    (root / "docs").mkdir(parents=True)
    other.mkdir()
    (root / "docs/a b.md").write_text("# Title")
    (root / "picture.PNG").write_bytes(PNG)
    (root / "data").write_bytes(b"\xff\x00")
    (other / "main.py").write_text("print()")
    (tmp_path / "secret").write_text("secret")
    (root / "inside").symlink_to("docs/a b.md")
    (root / "outside").symlink_to(tmp_path / "secret")
    (root / "up").symlink_to(tmp_path)
    (root / "loop").symlink_to("loop")
    opened = UnsandboxedEnvironment(str(root), deadline=lease_clock() + 60, trees={"proj_2": other})
    yield opened
    await opened.aclose()


def make_attachments(
    environment: UnsandboxedEnvironment, gate: ScriptedGate | None = None, config: ResolvedConfig = CONFIG
) -> TurnAttachments:
    return TurnAttachments(
        NoAttachmentSources(), "org_a", config, environment, gate or ScriptedGate(), find_provider(config.model, {})
    )


def block(path: str, *, kind: str = "file", **more: str) -> JsonObject:
    project = {"project_id": more.pop("project_id")} if "project_id" in more else {}
    return {"type": kind, "source": {"type": "path", "path": path, **project}, **more}


@pytest.mark.requirement("K8")
@pytest.mark.requirement("R6")
async def test_the_model_gets_the_path_or_on_request_the_content(environment: UnsandboxedEnvironment) -> None:
    gate = ScriptedGate()
    path, image, text, other, linked = await make_attachments(environment, gate).resolve_attachments(
        [
            block("docs/a b.md", context="Read it."),
            block("picture.PNG", deliver="inline"),
            block("docs/a b.md", deliver="inline", title="T"),
            block("main.py", kind="document", project_id="proj_2"),
            block("inside"),
        ]
    )
    assert path == {
        "type": "text",
        "text": f"[The user refers to the file {environment.root}/docs/a b.md (7 bytes).]\nRead it.",
    }
    encoded = base64.b64encode(PNG).decode()
    assert image == {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encoded}}
    source = {"type": "text", "media_type": "text/plain", "data": "# Title"}
    assert text == {"type": "document", "source": source, "title": "T"}
    assert other["source"] == {**source, "data": "print()"}
    assert "inside (7 bytes)" in str(linked["text"])
    read = [str(given["file_path"]).rpartition("/")[2] for _, given in gate.calls]
    assert read == ["picture.PNG", "a b.md", "main.py"], "a path alone reads nothing"


@pytest.mark.requirement("R6")
@pytest.mark.parametrize("deliver", ["file", "inline"])
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("outside", "leads out of its project"),
        ("up/secret", "leads out of its project"),
        ("../secret", "leads out of its project"),
        ("loop", "leads out of its project"),
        ("missing", "no readable file 'missing'"),
        ("docs", "no readable file 'docs'"),
        (".", "leads out of its project"),
    ],
)
async def test_a_path_that_names_no_file_of_the_project_is_refused(
    environment: UnsandboxedEnvironment, path: str, reason: str, deliver: str
) -> None:
    with pytest.raises(AttachmentFailed, match=reason):
        await make_attachments(environment).resolve_attachments([block(path, deliver=deliver)])


@pytest.mark.requirement("R6")
async def test_a_project_of_another_session_is_refused(environment: UnsandboxedEnvironment) -> None:
    with pytest.raises(AttachmentFailed, match="does not work on the project 'proj_3'"):
        await make_attachments(environment).resolve_attachments([block("main.py", project_id="proj_3")])


@pytest.mark.requirement("K8")
async def test_content_that_the_model_does_not_accept_is_refused(environment: UnsandboxedEnvironment) -> None:
    with pytest.raises(AttachmentRefused, match="does not accept application/octet-stream inline"):
        await make_attachments(environment).resolve_attachments([block("data", deliver="inline")])


@pytest.mark.parametrize("outcome", [PermissionOutcome.ASK, PermissionOutcome.DENY])
async def test_a_file_that_rules_protect_is_not_sent_to_the_model(
    environment: UnsandboxedEnvironment, outcome: PermissionOutcome
) -> None:
    gate = ScriptedGate(outcomes={"read": outcome})
    inputs = make_attachments(environment, gate, replace(CONFIG, harness="native"))
    with pytest.raises(AttachmentRefused, match="rules do not allow"):
        await inputs.resolve_attachments([block("docs/a b.md", deliver="inline")])
    (steering,) = await inputs.resolve_steering([block("docs/a b.md", deliver="inline")])
    assert "A file that the user attached here could not be loaded" in str(steering["text"])
    assert await inputs.resolve_attachments([block("docs/a b.md")]), "the agent's own read is decided when it happens"
