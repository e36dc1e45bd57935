"""The output of `footplate gc` as text and as JSON."""

import json
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from footplate.cli import json_output_models
from footplate.cli.actions import gc
from footplate.cli.profile import dev_server
from footplate.cli.render import terminal_io
from footplate.config import Settings
from footplate.domain.files.object_gc import ObjectVerdict, RetentionReason, StoredObject
from footplate.wiring.garbage_collection import GcReport

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def make_result() -> GcReport:
    result = GcReport(
        expired=["sesn_old"], released=["sesn_a", "sesn_b"], retained_directories=[("sesn_c", "no snapshot has big")]
    )
    for number in range(25):
        result.add(ObjectVerdict(StoredObject(f"org/sesn_1/body_{number}.json", 1000, NOW), RetentionReason.UNNAMED))
    result.add(ObjectVerdict(StoredObject("org/sesn_1/trees/scratch/a.pack", 2_500_000, NOW), RetentionReason.FILES))
    return result


@pytest.fixture(autouse=True)
def _fake_collection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(work: Coroutine[object, object, GcReport]) -> GcReport:
        work.close()
        return make_result()

    monkeypatch.setattr(terminal_io, "run_async", run)
    monkeypatch.setattr(dev_server, "load_settings", lambda: Settings(data_dir=tmp_path))


def test_the_text_output_lists_removed_objects_and_why_others_are_retained(capsys: pytest.CaptureFixture[str]) -> None:
    gc.run_gc(dry=True, as_json=False)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[1:3] == [
        "would be removed 25 25.0 KB nothing in the log refers to it; the process that wrote it was interrupted",
        "kept 1 2.5 MB a snapshot of a session's files needs it",
    ]
    assert lines[3] == "org/sesn_1/body_0.json"
    assert lines[23] == "and 5 more; --json lists all"
    assert lines[24].startswith("Sessions: deleted on request only")
    assert lines[25].startswith("This host: the directories of 2 sessions have expired. The worker on this host")
    assert lines[26] == "kept: sesn_c, no snapshot has big"


def test_the_json_output_lists_each_object(capsys: pytest.CaptureFixture[str]) -> None:
    gc.run_gc(dry=False, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    Draft202012Validator(json.loads(json_output_models.generate_schema("gc"))).validate(printed)
    assert len(printed["objects"]) == 25
    assert [(one["reason"], one["objects"], one["bytes"]) for one in printed["kept"]] == [("files", 1, 2_500_000)]
    assert printed["expired_sessions"] == ["sesn_old"]


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 KB"), (2 * 10**15, "2000.0 TB")]
)
def test_sizes(count: int, text: str) -> None:
    assert gc.format_size(count) == text
