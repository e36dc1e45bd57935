"""The reference toolset on real files and programs."""

import base64
import os
import time
from collections.abc import Iterator

import pytest

from footplate.domain.agents.agents_and_config import BUILT_IN_TOOLS
from footplate.domain.errors import Unavailable
from footplate.domain.json import JsonObject
from footplate.harness.native.toolset import builtin_tools, glob_match, output_overflow, tool_inputs
from footplate.harness.native.toolset.builtin_tools import ToolOutput
from footplate.harness.native.web.web_tools import WebTools

from .doubles import LocalEnvironment, MemoryLog

pytestmark = pytest.mark.timing

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


async def run_tool(environment: LocalEnvironment, name: str, **arguments: object) -> ToolOutput:
    given: JsonObject = {key: value for key, value in arguments.items()}  # pyrefly: ignore[bad-assignment]  # noqa: C416 - narrowed
    return await builtin_tools.execute_tool(environment, BUILT_IN_TOOLS, name, given, web=WebTools())


def text_of(output: ToolOutput) -> str:
    return "".join(str(block["text"]) for block in output.content if isinstance(block, dict) and "text" in block)


async def test_bash_shows_output_and_exit_code(environment: LocalEnvironment) -> None:
    output = await run_tool(environment, "bash", command="echo out; echo err >&2; exit 3")
    assert (text_of(output), output.is_error) == ("out\nerr\n[exit code 3]", True)
    assert not (await run_tool(environment, "bash", command="true", description="Does nothing")).is_error


async def test_bash_timeout_and_restart(environment: LocalEnvironment) -> None:
    output = await run_tool(environment, "bash", command="sleep 30", timeout_ms=50)
    assert output.is_error
    assert "timed out after 0.05 s" in text_of(output)
    await run_tool(environment, "bash", restart=True)
    assert environment.restarts == 1


async def test_output_is_truncated_in_the_middle_and_cleaned(environment: LocalEnvironment) -> None:
    output = await run_tool(environment, "bash", command="echo first; head -c 100000 /dev/zero; echo last")
    text = text_of(output)
    assert text.startswith("first")
    assert text.rstrip().endswith("last")
    assert "characters omitted" in text
    assert len(text) < builtin_tools.OUTPUT_LIMIT + 100
    assert "\x00" not in text


async def test_read_text_and_ranges(environment: LocalEnvironment) -> None:
    (environment.path / "a.txt").write_text("one\ntwo\nthree\n")
    assert text_of(await run_tool(environment, "read", file_path="a.txt")) == "one\ntwo\nthree\n"
    assert text_of(await run_tool(environment, "read", file_path="a.txt", view_range=[2, 2])) == "two\n"
    assert text_of(await run_tool(environment, "read", file_path="a.txt", view_range=[2, -1])) == "two\nthree\n"
    assert (await run_tool(environment, "read", file_path="a.txt", view_range=[9, 10])).is_error
    assert (await run_tool(environment, "read", file_path="a.txt", view_range=[1])).is_error
    assert "is a directory" in text_of(await run_tool(environment, "read", file_path="."))


@pytest.mark.parametrize(
    ("data", "kind", "media_type"),
    [
        (PNG, "image", "image/png"),
        (b"\xff\xd8\xff\xe0jpeg", "image", "image/jpeg"),
        (b"GIF89a....", "image", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image", "image/webp"),
        (b"%PDF-1.7\n", "document", "application/pdf"),
    ],
)
async def test_images_and_pdf_are_attachments(
    environment: LocalEnvironment, data: bytes, kind: str, media_type: str
) -> None:
    (environment.path / "file").write_bytes(data)
    output = await run_tool(environment, "read", file_path="file")
    encoded = base64.b64encode(data).decode()
    assert output.content == [{"type": kind, "source": {"type": "base64", "media_type": media_type, "data": encoded}}]


async def test_other_binary_files_are_reported(environment: LocalEnvironment) -> None:
    (environment.path / "file").write_bytes(b"\x7fELF\x00\x00")
    output = await run_tool(environment, "read", file_path="file")
    assert output.is_error
    assert "binary file of 6 bytes" in text_of(output)


async def test_write_and_edit(environment: LocalEnvironment) -> None:
    await run_tool(environment, "write", file_path="deep/a.txt", content="x = 1\r\ny = 1\r\n")
    file = environment.path / "deep/a.txt"
    assert "occurs 2 times" in text_of(
        await run_tool(environment, "edit", file_path="deep/a.txt", old_string="= 1", new_string="= 2")
    )
    assert file.read_bytes() == b"x = 1\r\ny = 1\r\n"
    await run_tool(environment, "edit", file_path="deep/a.txt", old_string="x = 1", new_string="x = 2")
    assert file.read_bytes() == b"x = 2\r\ny = 1\r\n"
    output = await run_tool(
        environment, "edit", file_path="deep/a.txt", old_string=" = ", new_string="=", replace_all=True
    )
    assert (text_of(output), file.read_bytes()) == ("Replaced 2 occurrences in deep/a.txt.", b"x=2\r\ny=1\r\n")
    assert "does not occur" in text_of(
        await run_tool(environment, "edit", file_path="deep/a.txt", old_string="zz", new_string="")
    )


async def test_glob_newest_first(environment: LocalEnvironment) -> None:
    for age, name in enumerate(["new.py", "src/mid.py", "src/old.py", "src/other.txt"]):
        file = environment.path / name
        file.parent.mkdir(exist_ok=True)
        file.touch()
        os.utime(file, (1000 - age, 1000 - age))
    assert text_of(await run_tool(environment, "glob", pattern="**/*.py")) == "new.py\nsrc/mid.py\nsrc/old.py"
    assert text_of(await run_tool(environment, "glob", pattern="*.py", path="src")) == "src/mid.py\nsrc/old.py"
    assert text_of(await run_tool(environment, "glob", pattern=f"{environment.root}/*.py")) == "new.py"
    assert (await run_tool(environment, "glob", pattern="/etc/*")).is_error
    assert text_of(await run_tool(environment, "glob", pattern="*.rs")) == "No file matches."


async def test_grep(environment: LocalEnvironment) -> None:
    (environment.path / "a.py").write_text("import os\nprint(1)\n-e\n")
    assert text_of(await run_tool(environment, "grep", pattern="^(import|from) ")) == "./a.py:1:import os"
    assert text_of(await run_tool(environment, "grep", pattern="-e")) == "./a.py:3:-e"
    nothing = await run_tool(environment, "grep", pattern="zebra")
    assert (text_of(nothing), nothing.is_error) == ("No match.", False)
    assert (await run_tool(environment, "grep", pattern="(")).is_error
    assert (await run_tool(environment, "grep", pattern="x", path="gone")).is_error


async def test_a_lost_environment_is_no_tool_failure(environment: LocalEnvironment) -> None:
    """The call may have taken effect, so only the next attempt reports its outcome."""

    async def gone(path: str) -> bytes:
        raise Unavailable("the guardian is gone")

    environment.read = gone  # pyrefly: ignore[method-assign]
    with pytest.raises(Unavailable):
        await run_tool(environment, "read", file_path="a")


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.py", "a.py", True),
        ("*.py", "a/b.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "a/b/c.py", True),
        ("a/**", "a/b/c.py", True),
        ("./a/*", "a/b", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[ab].c", "b.c", True),
        ("[!ab].c", "b.c", False),
        ("[!ab].c", "/.c", False),
        ("*.{ts,tsx}", "a.tsx", True),
        ("*.{ts,tsx}", "a.js", False),
        ("a{b", "a{b", True),
        ("a,b}", "a,b}", True),
        (r"\*.c", "*.c", True),
        (r"\*.c", "a.c", False),
        ("a+b(.c", "a+b(.c", True),
        ("*.py", "a.py\n", False),
    ],
)
def test_glob_patterns(pattern: str, path: str, *, matches: bool) -> None:
    assert bool(glob_match.compile_pattern(pattern).match(path)) is matches


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 30 + "b", "a" * 250),
        ("**/" * 40 + "b", "a/" * 2000),
        ("**/*a*a*a*b/" * 10 + "b", "/".join(["a" * 200] * 20)),
        ("?*" * 40 + "b", "a" * 250),
    ],
)
def test_no_pattern_is_slow(pattern: str, path: str) -> None:
    """Patterns are matched in the worker, which all turns share."""
    began = time.thread_time()
    assert not glob_match.compile_pattern(pattern).match(path)
    assert time.thread_time() - began < 1


@pytest.mark.parametrize("pattern", ["{a,b}" * 20, "a**b" * 20])
async def test_a_pattern_with_too_many_alternatives_is_refused(environment: LocalEnvironment, pattern: str) -> None:
    assert "256" in text_of(await run_tool(environment, "glob", pattern=pattern))


def test_schemas_name_the_reference_inputs() -> None:
    shapes = {
        name: sorted(tool_inputs.tool_definition(name).parameters_json_schema["properties"]) for name in BUILT_IN_TOOLS
    }
    assert shapes == {
        "bash": ["command", "restart", "timeout_ms"],
        "read": ["file_path", "view_range"],
        "write": ["content", "file_path"],
        "edit": ["file_path", "new_string", "old_string", "replace_all"],
        "glob": ["path", "pattern"],
        "grep": ["path", "pattern"],
        "web_fetch": ["url"],
        "web_search": ["query"],
        "ask_user": ["deadline_seconds", "default", "questions"],  # not of the reference, as those below
        "spawn_sessions": ["max_running", "sessions"],
        "wait_sessions": ["group_id"],
        "message_session": ["session_id", "text"],
    }


async def test_read_finds_lines_far_into_a_large_file(environment: LocalEnvironment) -> None:
    await environment.write("large", b"".join(b"%d\n" % number for number in range(1, 300_001)) + b"end")
    assert text_of(await run_tool(environment, "read", file_path="large", view_range=[299_999, 300_001])) == (
        "299999\n300000\nend"
    )
    assert "300001 lines" in text_of(await run_tool(environment, "read", file_path="large", view_range=[300_002, -1]))


@pytest.mark.requirement("O6")
async def test_the_result_of_a_command_has_separate_fields(environment: LocalEnvironment) -> None:
    """Status, both streams, exit code, duration and error message are separate fields."""
    output = await run_tool(environment, "bash", command="echo out; echo err >&2; exit 3")
    assert output.command is not None
    assert output.command.pop("duration_ms") != ""
    assert output.command == {
        "status": "failed",
        "exit_code": 3,
        "error": None,
        "stdout": {"text": "out\n", "bytes": 4},
        "stderr": {"text": "err\n", "bytes": 4},
    }
    assert (await run_tool(environment, "read", file_path="gone")).command is None


class LargeOutput:
    size = 7

    def pieces(self) -> Iterator[bytes]:
        yield b"all "
        yield b"of it"


@pytest.mark.parametrize(("refuses", "object_id"), [(False, "output-1"), (True, None)])
async def test_large_output_is_stored_and_a_failing_store_fails_nothing(
    *, refuses: bool, object_id: str | None
) -> None:
    log = MemoryLog(refuses_output=refuses)
    given = ToolOutput(
        [], command={"stdout": {"text": "all"}, "stderr": {"text": ""}}, full_output={"stdout": LargeOutput()}
    )
    output = await output_overflow.store_full_output(given, log)
    assert output.command == {"stdout": {"text": "all", "object": object_id}, "stderr": {"text": ""}}
    assert log.outputs == ([] if refuses else [b"all of it"])
