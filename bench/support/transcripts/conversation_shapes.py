"""Creates twenty conversations of different shapes with the plain CLI and a scripted model."""

import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.support.transcripts.plain_cli import LocalMachine
from footplate.testing import Replies, http_error, replies, reply, text, thinking, tool
from footplate.testing.scripted_model_process import ModelProcess

_PIXEL: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_LARGE: Final = 600_000


@dataclass(slots=True)
class ShapeSetup:
    """The machine and the model scripts with which one conversation is created."""

    name: str
    machine: LocalMachine
    model: ModelProcess
    has_lost_call: bool = False
    """Whether the conversation continued after a call that has no result."""
    script: str = ""

    async def install_script(self, script: Replies, *, also: Mapping[str, Replies] | None = None) -> str:
        """Installs a script and returns its marker for a prompt. The last script is the one the history ends with."""
        for name, more in (also or {}).items():
            await self.model.install(f"{self.name}-{name}", more)
        self.script = f"{self.name}-{self._script_count}" if self._script_count else self.name
        self._script_count += 1
        await self.model.install(self.script, script)
        return f"[[script:{self.script}]]"

    _script_count: int = field(default=0)


Make = Callable[[ShapeSetup], Awaitable[str]]
"""Creates a conversation and returns its session id."""


def _bash(command: str) -> Any:
    return tool("Bash", {"command": command})


def _agent(scene: ShapeSetup, name: str) -> Any:
    given = {"description": name, "prompt": f"Look. [[script:{scene.name}-{name}]]", "subagent_type": "general-purpose"}
    return tool("Agent", given)


async def plain_conversation(scene: ShapeSetup) -> str:
    return await scene.machine.start_session(f"Say hello. {await scene.install_script(replies([text('Hello.')]))}")


async def many_turns(scene: ShapeSetup) -> str:
    mark = await scene.install_script(replies(reply(text("Answer {n}."), repeat=True)))
    return await scene.machine.start_session(
        *(f"Question {number}. {mark if not number else ''}" for number in range(8))
    )


async def one_call(scene: ShapeSetup) -> str:
    return await scene.machine.start_session(
        f"Look. {await scene.install_script(replies([_bash('echo one')], [text('One.')]))}"
    )


async def calls_at_once(scene: ShapeSetup) -> str:
    calls = [text("Three of them."), _bash("echo a"), _bash("echo b"), _bash("echo c")]
    return await scene.machine.start_session(
        f"All at once. {await scene.install_script(replies(calls, [text('Three.')]))}"
    )


async def thoughts(scene: ShapeSetup) -> str:
    mark = await scene.install_script(replies([thinking("Hm."), _bash("echo hm")], [thinking("I see."), text("Seen.")]))
    return await scene.machine.start_session(f"Think. {mark}")


async def files(scene: ShapeSetup) -> str:
    path = str(scene.machine.work / "notes.txt")
    steps = replies(
        [tool("Write", {"file_path": path, "content": "alpha\nbeta\n"})],
        [tool("Read", {"file_path": path})],
        [tool("Edit", {"file_path": path, "old_string": "beta", "new_string": "gamma"})],
        [text("Written.")],
    )
    return await scene.machine.start_session(f"Write it down. {await scene.install_script(steps)}")


async def failing(scene: ShapeSetup) -> str:
    steps = replies([_bash("echo oops >&2; exit 3")], [tool("NoSuchTool", {})], [text("It failed.")])
    return await scene.machine.start_session(f"Fail. {await scene.install_script(steps)}")


async def picture(scene: ShapeSetup) -> str:
    path = scene.machine.work / "pixel.png"
    path.write_bytes(_PIXEL)
    steps = replies([tool("Read", {"file_path": str(path)})], [text("A pixel.")])
    return await scene.machine.start_session(f"What is in it? {await scene.install_script(steps)}")


async def subagent(scene: ShapeSetup) -> str:
    steps = replies([text("I ask one."), _agent(scene, "scout")], [text("It looked.")])
    mark = await scene.install_script(steps, also={"scout": replies([text("All quiet.")])})
    return await scene.machine.start_session(f"Delegate. {mark}")


async def subagents(scene: ShapeSetup) -> str:
    steps = replies([_agent(scene, "scout"), _agent(scene, "cook")], [text("Both did.")])
    busy = replies([_bash("echo busy")], [text("Done.")])
    return await scene.machine.start_session(
        f"Delegate twice. {await scene.install_script(steps, also={'scout': busy, 'cook': busy})}"
    )


async def compacted(scene: ShapeSetup) -> str:
    mark = await scene.install_script(replies(reply(text("Answer {n}."), repeat=True)))
    session_id = await scene.machine.start_session(f"Remember the blue door. {mark}", "And the key.", "/compact")
    await scene.machine.continue_session(session_id, f"Go on. {mark}")
    return session_id


async def compacted_twice(scene: ShapeSetup) -> str:
    mark = await scene.install_script(replies(reply(text("Answer {n}."), repeat=True)))
    session_id = await scene.machine.start_session(f"One. {mark}", "/compact", f"Two. {mark}", "/compact")
    await scene.machine.continue_session(session_id, f"Three. {mark}")
    return session_id


async def compacted_with_calls(scene: ShapeSetup) -> str:
    mark = await scene.install_script(
        replies([_bash("echo one")], [text("One.")], reply(text("Answer {n}."), repeat=True))
    )
    last = await scene.install_script(replies([_bash("echo two")], [text("Two.")]))
    session_id = await scene.machine.start_session(f"Look. {mark}", "/compact")
    await scene.machine.continue_session(session_id, f"Look again. {last}")
    return session_id


async def branched(scene: ShapeSetup) -> str:
    mark = await scene.install_script(replies(reply(text("Answer {n}."), repeat=True)))
    session_id = await scene.machine.start_session(f"First. {mark}", "Left.", "Further left.")
    await scene.machine.continue_session(session_id, "Right.", at=_assistant_message_ids(scene, session_id)[0])
    return session_id


async def branched_twice(scene: ShapeSetup) -> str:
    mark = await scene.install_script(
        replies(reply(_bash("echo {n}"), repeat=1), reply(text("Answer {n}."), repeat=True))
    )
    session_id = await scene.machine.start_session(f"First. {mark}", "Left.")
    await scene.machine.continue_session(session_id, "Right.", at=_assistant_message_ids(scene, session_id)[1])
    await scene.machine.continue_session(session_id, "Straight on.", at=_assistant_message_ids(scene, session_id)[1])
    return session_id


async def interrupted(scene: ShapeSetup) -> str:
    mark = await scene.install_script(replies([text("This takes long."), _bash("touch begun; sleep 600")]))
    return await scene.machine.run_and_kill(f"Wait. {mark}", when=(scene.machine.work / "begun").exists)


async def interrupted_among_calls(scene: ShapeSetup) -> str:
    session_id = await plain_conversation(scene)
    begun = scene.machine.work / "begun"
    mark = await scene.install_script(replies([_bash("echo a"), _bash("touch begun; sleep 600")]))
    await scene.machine.run_and_kill(f"Wait. {mark}", when=begun.exists, resume=session_id)
    return session_id


async def interrupted_and_gone_on(scene: ShapeSetup) -> str:
    session_id = await interrupted(scene)
    scene.has_lost_call = True
    await scene.machine.resume_with_cli(
        session_id, f"Never mind. {await scene.install_script(replies([text('Fine.')]))}"
    )
    return session_id


async def large(scene: ShapeSetup) -> str:
    path = scene.machine.work / "large.txt"
    path.write_text("".join(f"{number:07} {'x' * 80}\n" for number in range(800)))
    steps = replies([tool("Read", {"file_path": str(path)})], [text("word " * 20_000)], [text("Short.")])
    mark = await scene.install_script(steps)
    return await scene.machine.start_session(f"Read it. {mark}", f"Much: {'y' * _LARGE}")


async def refused(scene: ShapeSetup) -> str:
    mark = await scene.install_script(replies([http_error(400, message="no such luck")]))
    last = await scene.install_script(replies([text("Luck.")]))
    return await scene.machine.start_session(f"Try. {mark}", f"Try again. {last}")


async def torn(scene: ShapeSetup) -> str:
    """Creates a transcript whose last line is incomplete, with text that looks like a secret or a transcript line."""
    steps = replies([text("key sk-ant-0000 \u2028 \u0007 {'type': 'user'}")])
    session_id = await scene.machine.start_session(f"Odd words. {await scene.install_script(steps)}")
    with scene.machine.transcript(session_id).open("ab") as file:
        file.write(b'{"parentUuid":"x","type":"assist')
    return session_id


def _assistant_message_ids(scene: ShapeSetup, session_id: str) -> list[str]:
    path: Path = scene.machine.transcript(session_id)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [str(line["uuid"]) for line in lines if line["type"] == "assistant"]


SHAPES: Final[Mapping[str, Make]] = {
    make.__name__.replace("_", "-"): make
    for make in (
        subagent, interrupted, branched, compacted, many_turns, one_call, calls_at_once, thoughts, files,
        failing, picture, subagents, compacted_twice, compacted_with_calls, branched_twice, interrupted_among_calls,
        interrupted_and_gone_on, large, refused, torn,
    )
}  # fmt: skip
