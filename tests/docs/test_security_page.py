"""docs/security.md matches the escape suite, and docs/environments.md matches the settings."""

import re
from pathlib import Path

from bench.support.escape import attempt, security_page_parser, suite

from footplate.config import Settings
from footplate.environments.isolation import filesystem_view
from footplate.environments.isolation.resource_limits import SandboxLimits

DOCS = Path(__file__).resolve().parents[2] / "docs"
SECURITY = (DOCS / "security.md").read_text()
ENVIRONMENTS = (DOCS / "environments.md").read_text()


def test_every_attempt_is_named_once_and_every_name_is_an_attempt() -> None:
    known = attempt.attempt_names(suite.ATTEMPTS)
    assert sorted(security_page_parser.parse_page(SECURITY).list_named_attempts(known)) == sorted(known)


def test_every_sentence_about_a_boundary_is_tied_to_an_attempt() -> None:
    read = security_page_parser.parse_page(SECURITY)
    assert len(read.sentences) > 25
    assert read.find_sentences_without_attempt(attempt.attempt_names(suite.ATTEMPTS)) == []


def test_a_sentence_without_an_attempt_is_found() -> None:
    read = security_page_parser.parse_page(
        SECURITY.replace(
            security_page_parser.UNPROTECTED,
            f"- Nobody reads minds: `read-minds`.\n\n{security_page_parser.UNPROTECTED}",
        )
    )
    known = attempt.attempt_names(suite.ATTEMPTS)
    assert read.find_sentences_without_attempt(known) == ["- Nobody reads minds: `read-minds`.\n"]
    assert "read-minds" in read.list_named_attempts(known)


def test_the_suite_has_attempts_of_every_category() -> None:
    assert len(suite.ATTEMPTS) >= 60
    assert {tried.category for tried in suite.ATTEMPTS} == set(attempt.CATEGORIES)
    assert len(set(attempt.attempt_names(suite.ATTEMPTS))) == len(suite.ATTEMPTS)


def test_every_environment_setting_exists_and_is_documented() -> None:
    fields = {name.upper(): field for name, field in Settings.model_fields.items()}
    named = set(re.findall(r"FOOTPLATE_([A-Z_]+)", ENVIRONMENTS))
    assert {name for name in fields if name.startswith("SANDBOX_")} | {"ENVIRONMENT"} <= named <= set(fields)
    gib = 1 << 30
    assert f"| {fields['SANDBOX_MEMORY'].default // gib} GiB |" in ENVIRONMENTS
    assert f"| {fields['SANDBOX_DISK'].default // gib} GiB |" in ENVIRONMENTS
    assert f"| {fields['SANDBOX_PIDS'].default} |" in ENVIRONMENTS
    assert f"| {fields['SANDBOX_CPUS'].default} |" in ENVIRONMENTS
    assert (SandboxLimits().memory, SandboxLimits().disk) == (
        fields["SANDBOX_MEMORY"].default,
        fields["SANDBOX_DISK"].default,
    )


def test_every_path_inside_is_documented() -> None:
    for path in (filesystem_view.WORKSPACE_MOUNT, *filesystem_view.STATE_MOUNTS.values()):
        assert f"| `{path}` |" in ENVIRONMENTS
