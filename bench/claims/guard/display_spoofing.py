"""The command line shows exactly what would run: hostile inputs can neither be disguised nor control the terminal.

Calls with hostile inputs wait for approval in real sessions. `approvals`, `approve`, the prompts of `attach`, `show`
and `logs` show them on terminals of 60 and 140 columns and in pipes; `agents ls`, `ls`, `diff`, `diff --stat` and `run`
show hostile names, files and messages. A parser recovers each input: completely where a person decides, and elsewhere
the part that is shown and the number of omitted characters.
"""

import asyncio
import itertools
import os
import random
import secrets
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.prove.figure import Figure, require
from bench.support.clients import TOOLSET
from bench.support.cluster import Cluster, open_cluster
from bench.support.display import screen_parsing
from bench.support.display.hostile_inputs import make_inputs
from bench.support.display.screens import Screen, Screens
from footplate.client import AsyncFootplate
from footplate.domain.text.visible_text import recover_text
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, text, tool

_BATCH: Final = 25
_WIDTHS: Final = (60, 140)
_TIMEOUT_SECONDS: Final = 120.0
_ASKING_TOOLSET: Final = {
    **TOOLSET,
    "configs": [{"name": name, "permission_policy": {"type": "always_ask"}} for name in ("bash", "write")],
}
_MAX_PRINTED_FAULTS: Final = 60
_NAME_BYTES: Final = 120
_MODEL: Final = "anthropic:scripted"


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    inputs = make_inputs(24 if quick else 300, random.Random(seed))
    with tempfile.TemporaryDirectory() as root:
        async with (
            open_cluster(environment={"FOOTPLATE_PROJECTS_ROOT": root}) as cluster,
            AsyncFootplate(cluster.base_urls[0], cluster.key) as client,
            Screens(_environment(cluster)) as first,
            Screens(_environment(cluster)) as second,
        ):
            return await _Trial(cluster, client, (first, second), Path(root)).run([made for _, made in inputs])


def _environment(cluster: Cluster) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(cluster.directory),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "PAGER": "cat",
        "FOOTPLATE_BASE_URL": cluster.base_urls[0],
        "FOOTPLATE_API_KEY": cluster.key,
    }


class _Trial:
    def __init__(self, cluster: Cluster, client: AsyncFootplate, screens: Sequence[Screens], root: Path) -> None:
        self._cluster = cluster
        self._client = client
        self._screens = screens
        self._root = root
        self._environment_id = ""
        self._shown = 0
        self._recovered = 0
        self._faults: list[str] = []

    async def run(self, inputs: Sequence[str]) -> Figure:
        cloud = {"type": "cloud", "networking": {"type": "unrestricted"}}
        self._environment_id = (await self._client.environments.create(name="display", config=cloud)).id
        batches = [inputs[start : start + _BATCH] for start in range(0, len(inputs), _BATCH)]
        agent = await self._client.agents.create(name="asking", model=_MODEL, tools=[_ASKING_TOOLSET], harness="native")
        parked = await asyncio.gather(*(self._park(agent.id, batch) for batch in batches))
        halves = [parked[0::2], parked[1::2]]
        async with asyncio.TaskGroup() as group:
            for screens, half in zip(self._screens, halves, strict=True):
                group.create_task(self._check_calls(screens, half))
        await self._check_names(self._screens[0], inputs)
        await self._check_files(self._screens[0], inputs)
        summary = (
            f"{len(inputs)} hostile inputs on {self._shown} screens (60 and 140 columns and pipes): "
            f"{self._recovered} recovered, {len(self._faults)} not; no control sequence of an input reached a terminal"
        )
        for fault in self._faults[:_MAX_PRINTED_FAULTS]:
            print(f"  {fault}", flush=True)
        if self._faults:
            summary = f"{len(self._faults)} faults, the first: {self._faults[0]}"
        return Figure(
            headline=f"{len(inputs)} hostile inputs on {self._shown} screens: {self._recovered:,} recovered, "
            f"{len(self._faults)} not",
            summary=summary,
            holds=not self._faults,
            details={"faults": [*self._faults[:50]]},
        )

    async def _park(self, agent: str, batch: Sequence[str]) -> tuple[str, dict[str, dict[str, Any]]]:
        """Creates a session whose calls wait for approval; returns its id, and the inputs by call id."""
        name = secrets.token_hex(4)
        calls = [
            tool("bash", {"command": each})
            if number % 2
            else tool("write", {"file_path": f"f{number}", "content": each, "a: |(b": {"a": each[:200]}})
            for number, each in enumerate(batch)
        ]
        await self._cluster.model.install(name, replies(calls, [text("Done.")]))
        title = (batch[0][:100] or "x").replace("\0", "")
        session = await self._client.sessions.create(agent=agent, environment_id=self._environment_id, title=title)
        await self._client.events.send_text(session.id, f"Go. [[script:{name}]]")

        async def all_calls_wait() -> bool:
            listed = [one async for one in self._client.approvals.list(limit=100, session_id=session.id)]
            return len(listed) == len(batch)

        require(
            holds=await wait_until(all_calls_wait, _TIMEOUT_SECONDS), otherwise="the calls do not wait for approval"
        )
        listed = [one.id async for one in self._client.approvals.list(limit=100, session_id=session.id)]
        whole = [await self._client.approvals.retrieve(event_id) for event_id in listed]
        for one, each in zip(whole, batch, strict=True):
            given = one.input or {}
            require(holds=each in (given.get("command"), given.get("content")), otherwise=f"{each!r} became {given}")
            assert one.display is not None
            shown = {recover_text(field.name)[0]: recover_text(field.text)[0] for field in one.display.input}
            same = all(shown[key] == value for key, value in given.items() if isinstance(value, str))
            self._judge("`display`", recovered=same and one.display.whole, about=each)
        return session.id, {one.id: one.input or {} for one in whole}

    async def _check_calls(self, screens: Screens, parked: Sequence[tuple[str, dict[str, dict[str, Any]]]]) -> None:
        for session_id, calls in parked:
            for width in (*_WIDTHS, None):
                screen_name = f"at {width} columns" if width else "in a pipe"
                screen = await self._show_screen(screens, "approvals", "--session", session_id, width=width)
                self._judge_list(f"approvals {screen_name}", screen, calls)
                screen = await self._show_screen(screens, "show", session_id, width=width)
                found = screen_parsing.read_session(screen.out)
                for event_id, given in calls.items():
                    self._judge_whole(f"show {screen_name}", found.get(event_id), given)
                screen = await self._show_screen(screens, "logs", session_id, width=width)
                commands = [str(given["command"]) for given in calls.values() if "command" in given]
                logged = screen_parsing.read_log(screen.out)
                self._judge(f"logs {screen_name}", recovered=len(logged) == len(commands), about=f"{len(logged)} calls")
                for (part, missing), whole in zip(logged, commands, strict=False):
                    self._judge(f"logs {screen_name}", recovered=_is_part(part, missing, whole), about=whole)
                if width is not None:
                    await self._check_prompts(screens, session_id, calls, width)
            screen = await self._show_screen(screens, "approve", "--yes", *calls, width=None)
            shown = screen_parsing.read_shown_calls(screen.err)
            for fields, given in itertools.zip_longest(shown, calls.values()):
                self._judge_whole("approve in a pipe", fields, given)
            self._judge("approve in a pipe", recovered=screen.code == 0, about=screen.err[-500:])

    async def _check_prompts(
        self, screens: Screens, session_id: str, calls: dict[str, dict[str, Any]], width: int
    ) -> None:
        for name, arguments in (("approve", ("approve", *calls)), ("attach", ("attach", session_id))):
            screen = await self._show_screen(screens, *arguments, width=width)
            asked = screen_parsing.read_questions(screen.out)
            self._judge(f"{name} at {width}", recovered=len(asked) == len(calls), about=f"{len(asked)} questions")
            for fields, given in itertools.zip_longest(asked, calls.values()):
                self._judge_whole(f"{name} at {width} columns", fields, given)
            self._judge(f"{name} at {width}", recovered=screen.code == 3, about=f"exit code {screen.code}")

    async def _check_names(self, screens: Screens, inputs: Sequence[str]) -> None:
        names = [each[:256] for each in inputs if each[:256].strip()]
        for name in names:
            await self._client.agents.create(name=name, model=_MODEL)
        wanted = [one.name async for one in self._client.agents.list(limit=100)]
        titles = [one.title or "" async for one in self._client.sessions.list(limit=50)]
        for width in (*_WIDTHS, None):
            for command, heading, expected in (
                (("agents", "ls"), "NAME", wanted),
                (("ls", "--limit", "50"), "TITLE", titles),
            ):
                screen = await self._show_screen(screens, *command, width=width)
                found = list(screen_parsing.read_column(screen.out, heading))
                about = f"{len(found)} rows of {len(expected)}"
                self._judge(f"{command[0]} at {width}", recovered=len(found) == len(expected), about=about)
                for (part, missing), whole in zip(found, expected, strict=False):
                    self._judge(f"{command[0]} at {width}", recovered=_is_part(part, missing, whole), about=whole)

    async def _check_files(self, screens: Screens, inputs: Sequence[str]) -> None:
        """Checks files with hostile names and contents in a project, and a message of all inputs."""
        repository = self._root / "project"
        await asyncio.to_thread(_make_repository, repository)
        project = await self._client.projects.create(path=str(repository))
        names = {
            f"{number} {_make_file_name(each)}": each for number, each in enumerate(inputs) if len(each) < _BATCH * 1000
        }
        writes = [tool("write", {"file_path": name, "content": each}) for name, each in names.items()]
        message = "\n---\n".join(each for each in inputs if len(each) < 1000)
        await self._cluster.model.install("files", replies(writes, [text("Done.")]))
        await self._cluster.model.install("says", replies([text(message)]))
        agent = await self._client.agents.create(name="writing", model=_MODEL, tools=[TOOLSET], harness="native")
        session = await self._client.sessions.create(
            agent=agent.id, environment_id=self._environment_id, project_ids=[project.id]
        )
        await self._show_screen(screens, "run", "--session", session.id, "Go. [[script:files]]", width=None)
        found = await self._client.sessions.diff(session.id)
        wanted = sorted(file.path for tree in found.trees for file in tree.files)
        self._judge("diff", recovered=wanted == sorted(names), about=f"{len(wanted)} files of {len(names)}")
        exact = await self._show_screen(screens, "diff", session.id, width=None, exact=True)
        for width in (*_WIDTHS, None):
            screen = await self._show_screen(screens, "diff", "--stat", session.id, width=width)
            lines = screen_parsing.STYLE.sub("", screen.out).split("\n")
            paths = [recover_text(line[2:].rpartition("  ")[0])[0] for line in lines if line.startswith("A ")]
            self._judge(f"diff --stat at {width}", recovered=sorted(paths) == wanted, about=f"{len(paths)} files")
            message_screen = await self._show_screen(
                screens, "run", "--session", session.id, "Go. [[script:says]]", width=width
            )
            shown_message = recover_text(screen_parsing.STYLE.sub("", message_screen.out))[0]
            if width is None:
                self._judge(
                    "run in a pipe", recovered=shown_message.rstrip("\n") == message.rstrip("\n"), about="what it says"
                )
            else:
                self._judge(
                    f"run at {width}",
                    recovered=" ".join(message.split()) in " ".join(shown_message.split()),
                    about="it",
                )
                patch = await self._show_screen(screens, "diff", session.id, width=width)
                lines = screen_parsing.STYLE.sub("", patch.out).split("\n")
                same = [recover_text(line)[0] for line in lines] == exact.out.split("\n")
                self._judge(f"diff at {width}", recovered=same, about="the patch")

    async def _show_screen(self, screens: Screens, *arguments: str, width: int | None, exact: bool = False) -> Screen:
        screen = await screens.run_command(*arguments, width=width)
        self._shown += 1
        for shown in () if exact else (screen.out, screen.err):
            if (raw := screen_parsing.find_raw(shown)) is not None:
                self._faults.append(f"{arguments[0]} at {width}: {raw} reached the screen")
        return screen

    def _judge_list(self, screen_name: str, screen: Screen, calls: dict[str, dict[str, Any]]) -> None:
        found = screen_parsing.read_list(screen.out)
        for event_id, given in calls.items():
            fields = found.get(event_id, {})
            for name, value in given.items():
                part, missing = fields.get(name, (None, 0))
                self._judge(
                    screen_name, recovered=_is_part(part, missing, value), about=f"{value!r:.300} as {part!r:.300}"
                )

    def _judge_whole(
        self, screen_name: str, fields: screen_parsing.Fields | None, given: dict[str, Any] | None
    ) -> None:
        recovered = {name: value for name, (value, missing) in (fields or {}).items() if not missing}
        self._judge(screen_name, recovered=recovered == given, about=f"{given!r:.300} was read as {recovered!r:.300}")

    def _judge(self, screen_name: str, *, recovered: bool, about: str) -> None:
        if recovered:
            self._recovered += 1
        else:
            self._faults.append(f"{screen_name}: {about!r:.700}")


def _is_part(part: object, missing: int, whole: object) -> bool:
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part) and len(part) + missing == len(whole)
    return part == whole or missing > 0


def _make_file_name(text_: str) -> str:
    plain = text_.replace("/", "").replace("\0", "")
    return plain.encode()[:_NAME_BYTES].decode(errors="ignore")


def _make_repository(at: Path) -> None:
    at.mkdir()
    at.joinpath("file").write_text("one\n")
    settings = ["-c", "user.name=User", "-c", "user.email=user@example.com"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run(["git", *settings, *arguments], cwd=at, check=True)
