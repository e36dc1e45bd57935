"""The demo's worker is killed once, during the slow command. Any other death of it is reported."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx2
import pytest

from footplate.cli.dev import demo_crash, scenario_lookup
from footplate.stack import Service
from footplate.stack.orphan_processes import wait_until
from footplate.testing import Replies, ScriptedModel, script_json
from footplate.testing.reply_steps import Tool

pytestmark = pytest.mark.timing


class Sleeper(Service):
    title = "Worker 0"
    owns_directory = False

    @property
    def address(self) -> str:
        return ""

    @property
    def program(self) -> Path:
        return Path(sys.executable)

    def arguments(self) -> Sequence[str]:
        return ["-c", "import time; time.sleep(60)"]

    async def is_ready(self) -> bool:
        return True


def _demo() -> Replies:
    return script_json.load_file(scenario_lookup.find_scenario("demo"))["default"]


def test_the_crash_happens_at_the_slow_command() -> None:
    (call,) = [step for step in _demo().replies[scenario_lookup.CRASH_REPLY].steps if isinstance(step, Tool)]
    assert "sleep 10" in str(call.input["command"])


async def _request_model(url: str, replies_before: int) -> None:
    messages = [message for _ in range(replies_before) for message in _exchange()]
    body = {"model": "m", "max_tokens": 9, "messages": [*messages, {"role": "user", "content": "Go on"}]}
    async with httpx2.AsyncClient(trust_env=False) as client:
        response = await client.post(f"{url}/v1/messages", json=body, headers={"x-api-key": "none"}, timeout=60)
        assert response.status_code == 200


def _exchange() -> list[dict[str, str]]:
    return [{"role": "user", "content": "Go on"}, {"role": "assistant", "content": "Yes"}]


async def test_the_worker_is_killed_once_and_restarted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_crash, "_KILL_DELAY_SECONDS", 0)
    monkeypatch.setattr(demo_crash, "_POLL_SECONDS", 0.01)
    worker = Sleeper(tmp_path / "worker", log_file=tmp_path / "log")
    messages: list[str] = []
    async with ScriptedModel({"default": _demo()}, key="none") as model:
        await worker.start()
        first = worker.pid
        death = asyncio.create_task(
            demo_crash.wait_and_kill_once(worker, model.url.removeprefix("http://"), "none", messages.append)
        )
        try:
            await _request_model(model.url, scenario_lookup.CRASH_REPLY - 1)
            await asyncio.sleep(0.1)
            assert worker.pid == first
            await _request_model(model.url, scenario_lookup.CRASH_REPLY)

            async def both_reported() -> bool:
                return len(messages) == 2

            assert await wait_until(both_reported, 30)
            assert worker.pid != first
            assert f"pid {first}" in messages[0]
            assert not death.done()
        finally:
            await worker.kill()
        assert await death == -9


async def test_another_death_is_reported_at_once(tmp_path: Path) -> None:
    worker = Sleeper(tmp_path / "worker", log_file=tmp_path / "log")
    await worker.start()
    death = asyncio.create_task(demo_crash.wait_and_kill_once(worker, "127.0.0.1:9", "", lambda _: None))
    await asyncio.sleep(0.1)
    await worker.kill()
    async with asyncio.timeout(10):
        assert await death == -9


async def test_the_demos_work_has_no_compiled_files(tmp_path: Path) -> None:
    steps = [step for reply in _demo().replies[:2] for step in reply.steps if isinstance(step, Tool)]
    commands = [str(step.input["command"]) for step in steps]
    script = "\n".join(["git init -q", *commands, "test -d __pycache__ && git status --porcelain"])
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", script),
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    listed, _ = await process.communicate()
    assert listed.decode().splitlines()[-3:] == ["?? .gitignore", "?? middle.py", "?? test_middle.py"]
