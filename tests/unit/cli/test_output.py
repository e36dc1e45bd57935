"""Every command writes through one module, and no output can control the terminal."""

import ast
import io
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import footplate.cli
from footplate.cli.render import patch_pager, resource_tables, terminal_io
from footplate.cli.render.safe_console import SafeConsole
from footplate.cli.render.terminal_io import ContentWriter
from footplate.client import Agent, Approval
from footplate.domain.text.visible_text import recover_text

HOSTILE = "a\x1b]0;evil\x07\x9b31m\r\u202eb\u200b"
SHOWN = "a<U+001B>]0;evil<U+0007><U+009B>31m<U+000D><U+202E>b<U+200B>"
WRITERS = {"terminal_io.py", "safe_console.py", "completion.py", "terminal_client.py"}
"""Modules that may write. `completion.py` writes to a shell and filters its own output. `terminal_client.py` shows the
terminal of a session, whose output the worker has filtered."""
ALLOWED = {("main.py", "sys.stdout"), ("main.py", "sys.stderr")}
ALLOWED |= {("usage_errors.py", "sys.stderr"), ("approval_prompt.py", "sys.stderr")}
"""These check whether the stream is a terminal, or set its encoding."""
FORBIDDEN_NAMES = {"print", "Console"}
FORBIDDEN = {"sys.stdout", "sys.stderr", "sys.__stdout__", "os.write", "typer.echo", "typer.secho", "typer.prompt"}
FORBIDDEN |= {"typer.confirm", "click.echo", "rich.print", "rich.markup", "rich.console", "rich.live", "rich.progress"}


def find_writes(name: str, source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        text = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""
        if isinstance(node, ast.ImportFrom):
            text = node.module or ""
        if text in FORBIDDEN_NAMES | FORBIDDEN and (name, text) not in ALLOWED:
            found.append(f"{name}:{getattr(node, 'lineno', 0)}: {text}")
        if isinstance(node, ast.Attribute) and ast.unparse(node).endswith((".file.write", ".stdout.write")):
            found.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    return found


def test_no_other_module_of_the_command_line_writes() -> None:
    modules = [path for path in Path(footplate.cli.__path__[0]).rglob("*.py") if path.name not in WRITERS]
    assert [one for path in modules for one in find_writes(path.name, path.read_text())] == []


@pytest.mark.parametrize(
    "line",
    ["print(1)", "sys.stdout.write(x)", "typer.echo(x)", "from rich.console import Console", "screen.file.write(x)"],
)
def test_the_check_finds_writes(line: str) -> None:
    assert find_writes("some.py", line)


def test_a_patch_on_a_terminal_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    patch_pager.show_patch(f"--- a\n+++ b\n@@ -0,0 +1,2 @@\n+{HOSTILE}\n+\ttwo \n".encode(), uses_pager=False)
    assert capsys.readouterr().out == f"--- a\n+++ b\n@@ -0,0 +1,2 @@\n+{SHOWN}\n+\ttwo \n"


def test_a_console_escapes_text_that_its_caller_did_not() -> None:
    file = io.StringIO()
    console = SafeConsole(file=file, force_terminal=True, no_color=True, emoji=False, highlight=False, width=200)
    console.print(HOSTILE, markup=False)
    assert file.getvalue() == f"{SHOWN}\n"


@given(texts=st.lists(st.text(st.sampled_from("\\[]ab/:=# @"), max_size=12), min_size=2, max_size=3))
@example(texts=["[a", "b]"])
@example(texts=["\\\\\\", ":bomb:"])
def test_quoted_text_is_no_markup(texts: list[str]) -> None:
    file = io.StringIO()
    console = SafeConsole(file=file, no_color=True, emoji=False, highlight=False, width=200)
    console.print(
        "".join(f"[bold]{terminal_io.quote(text)}[/]|{terminal_io.quote(text)};" for text in texts), soft_wrap=True
    )
    shown = file.getvalue().removesuffix("\n")
    assert recover_text(shown)[0] == "".join(f"{text}|{text};" for text in texts)


def test_quoting_takes_linear_time() -> None:
    began = time.process_time()
    for text in ("\\" * 300_000 + "a", "[a" * 150_000, "\\[" * 150_000):
        terminal_io.quote(text)
    assert time.process_time() - began < 5


def test_json_is_exact_and_has_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"a": HOSTILE + "\x7f\U000e0041é漢"}
    for write in (terminal_io.print_json, terminal_io.print_json_line):
        write(value)
        text = capsys.readouterr().out
        assert json.loads(text) == value
        assert "é漢" in text
        assert not {"\x1b", "\x9b", "\x7f", "\u202e", "\u200b", "\U000e0041"} & {*text}


def test_names_in_tables_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    agent: dict[str, Any] = {"id": "agent_1", "name": HOSTILE + ":bomb:[red]", "version": 1, "model": {"id": "m"}}
    agent |= {"created_at": "2026-11-15T12:00:00Z", "updated_at": "2026-11-15T12:00:00Z"}
    resource_tables.print_agents([Agent.model_validate(agent)])
    assert capsys.readouterr().out.endswith(f"{SHOWN}:bomb:[red]\n")
    resource_tables.print_agent(Agent.model_validate(agent))
    assert f"{SHOWN}:bomb:[red]\n" in capsys.readouterr().out


def test_a_list_of_approvals_hides_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    call: dict[str, Any] = {
        "id": "sevt_1",
        "status": "pending",
        "session_id": "sesn_1",
        "turn_id": "turn_1",
        "name": "bash",
    }
    call |= {"created_at": "2026-11-15T12:00:00Z", "input": {"command": "echo harmless" + "\n" * 47 + "touch EVIL4"}}
    resource_tables.print_approvals([Approval.model_validate(call)])
    assert "  command: echo harmless<U+000A*46>\n  | touch EVIL4\n" in capsys.readouterr().out
    call |= {"name": "write", "input": {"file_path": "a", "content": "one\ntwo" + HOSTILE}}
    resource_tables.print_approvals([Approval.model_validate(call)])
    assert f"  content: one\n  | two{SHOWN}\n" in capsys.readouterr().out


@pytest.mark.parametrize("target", ["terminal", "pipe"])
def test_content_is_escaped_on_a_terminal_and_exact_in_a_pipe(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.openpty() if target == "terminal" else os.pipe()
    with os.fdopen(writing, "w", encoding="utf-8") as stdout:
        monkeypatch.setattr("sys.stdout", stdout)
        writer = ContentWriter()
        for piece in (HOSTILE.encode()[:8], HOSTILE.encode()[8:] + b"\n\xff"):
            assert writer.write(piece)
        writer.finish()
        monkeypatch.undo()
        wanted = f"{SHOWN}\r\n<U+DCFF>".encode() if target == "terminal" else HOSTILE.encode() + b"\n\xff"
        shown = b""
        while len(shown) < len(wanted):
            shown += os.read(reading, 4096)
    os.close(reading)
    assert shown == wanted
