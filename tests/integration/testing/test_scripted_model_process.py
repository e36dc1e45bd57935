"""The scripted model as a process: one line on stdout, control over HTTP, and how it ends."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import anthropic
import httpx2
import psutil
import pytest
from anthropic.types import MessageParam

from footplate.testing import ScriptedModel, replies, text, tool
from footplate.testing.scripted_model_process import ModelProcess

pytestmark = pytest.mark.timing

COMMAND = (sys.executable, "-m", "footplate.testing")
PIPE = asyncio.subprocess.PIPE


async def start(*arguments: str) -> tuple[asyncio.subprocess.Process, str, str]:
    process = await asyncio.create_subprocess_exec(*COMMAND, *arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE, env={})
    assert process.stdout is not None
    line = json.loads(await asyncio.wait_for(process.stdout.readline(), 20))
    assert line["pid"] == process.pid
    return process, line["url"], line["key"]


async def request_text(url: str, prompt: str, key: str = "test") -> str:
    messages: list[MessageParam] = [{"role": "user", "content": prompt}]
    async with (
        anthropic.AsyncAnthropic(api_key=key, base_url=url, max_retries=0) as client,
        client.messages.stream(model="m", max_tokens=9, messages=messages) as stream,
    ):
        return await stream.get_final_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_serves_a_file_and_ends_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "scripts.json"
    file.write_text(
        '{"scripts": {"a": {"replies": [[{"text": "from a file"}]]}, "h": {"replies": [[{"hang": true}]]}}}'
    )
    process, url, key = await start("--port", "0", "--script", str(file))
    assert await request_text(url, "[[script:a]]", key) == "from a file"
    with pytest.raises(anthropic.AuthenticationError):
        await request_text(url, "[[script:a]]", "another")
    hanging = asyncio.create_task(request_text(url, "[[script:h]]", key))
    await asyncio.sleep(0.2)
    process.send_signal(number)
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, out) == (0, b"")
    assert b"Traceback" not in err
    with pytest.raises(anthropic.APIError):
        await hanging


@pytest.mark.parametrize("path", ["/v1/models", "/_control/requests"])
async def test_requests_without_the_key_are_refused(path: str) -> None:
    async with ScriptedModel(key="its own") as model, httpx2.AsyncClient(base_url=model.url, trust_env=False) as http:
        assert (await http.get(path)).status_code == 401
        assert (await http.get(path, headers={"x-api-key": "its own"})).status_code == 200
        assert (await http.get(path, headers={"authorization": "Bearer its own"})).status_code == 200
        foreign = {"x-api-key": "its own", "origin": "https://evil.example"}
        assert (await http.get(path, headers=foreign)).status_code == 403
        assert model.requests() == [] or path == "/v1/models"


async def test_it_ends_when_its_stdin_closes() -> None:
    process, *_ = await start("--exit-with-stdin")
    assert process.stdin is not None
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), 5) == 0


async def test_an_invalid_file_is_reported_and_nothing_starts(tmp_path: Path) -> None:
    file = tmp_path / "scripts.json"
    file.write_text("{}")
    process = await asyncio.create_subprocess_exec(*COMMAND, "--script", str(file), stdout=PIPE, stderr=PIPE, env={})
    out, err = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, out) == (1, b"")
    assert b"a script file must be" in err


async def test_the_model_process_helper() -> None:
    async with ModelProcess({"s": replies([tool("bash", {"command": "{n}"})], [text("bye")])}) as model:
        await model.install("late", replies([text("late")]))
        assert await request_text(model.url, "[[script:late]]") == "late"
        assert [line["script"] for line in await model.requests()] == ["late"]
        assert await model.requests("s") == []
        (line,) = await model.requests("late", bodies=False)
        assert "body" not in line
        await model.clear()
        assert await model.requests() == []
        pid = model.pid
    assert not psutil.pid_exists(pid)
