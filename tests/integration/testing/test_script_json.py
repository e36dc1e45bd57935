"""Scripts as JSON: they survive a round trip, and mistakes are reported with their position."""

from pathlib import Path

import pytest

from footplate.testing import (
    Replies,
    ScriptError,
    cut,
    hang,
    http_error,
    replies,
    reply,
    script_json,
    sleep,
    stamps,
    stop,
    text,
    thinking,
    tool,
    usage,
)

pytestmark = pytest.mark.timing

EVERYTHING = replies(
    reply(
        *(
            text("a {n}", chunks=2, delay=0.5, start_delay=1),
            thinking("b", signature="x"),
            tool("bash", {"a": [1, None]}),
        ),
        *(stamps(3, delay=0.1), sleep(1.5), hang(), cut(), usage(1, 2, cache_read=3, cache_write=4), stop("refusal")),
        repeat=3,
        first_attempts=[[http_error(429, retry_after=2, headers={"x-should-retry": "false"})]],
    ),
    reply(tool("bash", call_id="toolu_{n}"), repeat=True),
)


def test_every_step_survives_a_round_trip() -> None:
    assert script_json.loads(script_json.dumps(EVERYTHING)) == EVERYTHING


def test_a_file_of_scripts(tmp_path: Path) -> None:
    file = tmp_path / "scripts.json"
    file.write_text('{"scripts": {"a": {"replies": [[{"text": "hi", "delay": 1}]]}, "b": {"replies": []}}}')
    assert script_json.load_file(file) == {"a": replies([text("hi", delay=1)]), "b": Replies(())}


def test_the_documented_example_is_true(tmp_path: Path) -> None:
    documentation = script_json.__doc__
    assert documentation is not None
    file = tmp_path / "example.json"
    file.write_text(documentation[documentation.index('    {"scripts"') :])
    assert set(script_json.load_file(file)) == {"lines"}


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ("nonsense", "not JSON"),
        ("[]", "a script must be"),
        ('{"replies": [], "repeat": 1}', "a script must be"),
        ('{"replies": {}}', "script.replies: expected a list"),
        ('{"replies": [{"repeat": 2}]}', r"script.replies\[0\]: a reply must be"),
        ('{"replies": [{"steps": [], "repeat": 0}]}', r"replies\[0\].repeat"),
        ('{"replies": [{"steps": [], "repeat": false}]}', r"replies\[0\].repeat"),
        ('{"replies": [[{"txt": "a"}]]}', r"replies\[0\]\[0\]: a step must be"),
        ('{"replies": [["a"]]}', r"replies\[0\]\[0\]: a step must be"),
        ('{"replies": [[{"text": "a", "chunk": 1}]]}', r"\['chunk'\]"),
        ('{"replies": [[{"text": 1}]]}', "text: Input should be a valid string"),
        ('{"replies": [[{"hang": false}]]}', "hang: Input should be True"),
        ('{"replies": [[{"usage": {"input": 1}}]]}', r"\['input'\]"),
        ('{"replies": [[{"stop_reason": "bored"}]]}', "stop_reason"),
        ('{"replies": [{"steps": [], "first_attempts": [[{"sleep": "1"}]]}]}', r"first_attempts\[0\]\[0\]"),
    ],
)
def test_mistakes_are_refused(raw: str, complaint: str) -> None:
    with pytest.raises(ScriptError, match=complaint):
        script_json.loads(raw.encode())


@pytest.mark.parametrize("content", ["[]", '{"scripts": []}', '{"scripts": {"a b": {"replies": []}}}'])
def test_mistaken_files_are_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "scripts.json"
    file.write_text(content)
    with pytest.raises(ScriptError):
        script_json.load_file(file)
