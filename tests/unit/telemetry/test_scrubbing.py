"""Text that looks like a credential is removed from error reports."""

import pytest

from footplate.telemetry.error_reports import scrub_event
from footplate.telemetry.secret_scrubbing import scrub_secrets


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("x-api-key sk-ant-api03-AbCdEf123456 refused", "sk-ant-api03-AbCdEf123456"),
        ("key fp_0123456789abcdefghij is revoked", "fp_0123456789abcdefghij"),
        ("Authorization: Bearer abc.def-ghi", "abc.def-ghi"),
        ("connect to postgresql://footplate:hunter2@db:5432/x failed", "hunter2"),
        ("redis://:hunter2@cache:6379/0", "hunter2"),
        ('{"password": "hunter2", "a": 1}', "hunter2"),
        ("api_key=hunter2, next", "hunter2"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ],
)
def test_a_secret_is_removed(text: str, secret: str) -> None:
    assert secret not in scrub_secrets(text)
    assert "[removed]" in scrub_secrets(text)


def test_ordinary_text_is_unchanged() -> None:
    text = "NotADirectoryError: [Errno 20] Not a directory: 'data/workspaces/acme/sesn_01k'"
    assert scrub_secrets(text) == text


@pytest.mark.requirement("F10")
def test_a_report_keeps_the_exception_and_nothing_about_the_machine_or_the_request() -> None:
    frame = {"filename": "a.py", "vars": {"key": "hunter2"}}
    value = {"type": "ValueError", "value": "token=hunter2", "stacktrace": {"frames": [frame]}}
    report = scrub_event(
        {
            "exception": {"values": [value]},
            "request": {"headers": {"authorization": "Bearer hunter2"}},
            "server_name": "host-1",
            "tags": {"session": "sesn_1"},
        },
        {},
    )
    assert "hunter2" not in str(report)
    assert "host-1" not in str(report)
    assert report.get("tags") == {"session": "sesn_1"}
    assert report.get("exception", {})["values"][0]["type"] == "ValueError"
