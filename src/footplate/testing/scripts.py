"""Scripts: which steps answer which request.

A script is any callable from a `Request` to steps, plain or async. `Replies` is the one that is also JSON: a
list of replies by index, where `{n}`, `{session}` and `{script}` inside texts and tool inputs are filled in.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from footplate.domain.json import JsonObject
from footplate.testing import steps as s
from footplate.testing.steps import Step

DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a script sees of one request for a reply, whichever its wire format."""

    script: str
    n: int
    """Assistant messages since the prompt that carries the script's marker: the index of the reply to give."""
    attempt: int
    """Earlier requests of this same conversation at this same `n`: above 0 the client is trying again."""
    session: str | None
    """The header `x-footplate-session`, or `x-claude-code-session-id`."""
    prompt: str
    """The text of the last user message that has any."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: JsonObject


Script: TypeAlias = Callable[[Request], Sequence[Step] | Awaitable[Sequence[Step]]]


class ScriptError(Exception):
    """The script has no answer to give; the client gets a 400 that says so, which nothing retries."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, given `repeat` times in a row, or from here on for ever when `repeat` is true."""

    steps: tuple[Step, ...]
    repeat: int | Literal[True] = 1
    first_attempts: tuple[tuple[Step, ...], ...] = ()
    """What the first tries of this reply get instead: an error that a retry overcomes, say."""


@dataclass(frozen=True, slots=True)
class Replies:
    """A script as a list: reply 0 answers the prompt, reply 1 what follows the first answer, and so on."""

    replies: tuple[Reply, ...]

    def __call__(self, request: Request) -> Sequence[Step]:
        chosen = self._reply(request)
        early = chosen.first_attempts
        steps = early[request.attempt] if request.attempt < len(early) else chosen.steps
        values = {"{n}": str(request.n), "{session}": request.session or "", "{script}": request.script}
        return [_render_step(step, values) for step in steps]

    def _reply(self, request: Request) -> Reply:
        end = 0
        for reply in self.replies:
            if reply.repeat is True:
                return reply
            end += reply.repeat
            if request.n < end:
                return reply
        raise ScriptError(f"script {request.script!r} has {end} replies and was asked for number {request.n}")


def reply(*steps: Step, repeat: int | Literal[True] = 1, first_attempts: Sequence[Sequence[Step]] = ()) -> Reply:
    return Reply(steps, repeat, tuple(tuple(attempt) for attempt in first_attempts))


def replies(*items: Reply | Sequence[Step]) -> Replies:
    return Replies(tuple(item if isinstance(item, Reply) else Reply(tuple(item)) for item in items))


def echo(request: Request) -> Sequence[Step]:
    """The script named `default`: a short answer that repeats the prompt's beginning."""
    return [s.text(f"You said: {request.prompt[:200]}")]


def _render_step(step: Step, values: Mapping[str, str]) -> Step:
    if isinstance(step, s.Text):
        return replace(step, text=_fill(step.text, values))
    if isinstance(step, s.Thinking):
        return replace(step, thinking=_fill(step.thinking, values))
    if isinstance(step, s.Tool):
        call_id = None if step.id is None else _fill(step.id, values)
        return replace(step, input={key: _render(value, values) for key, value in step.input.items()}, id=call_id)
    return step


def _render(value: object, values: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return _fill(value, values)
    if isinstance(value, list):
        return [_render(item, values) for item in value]
    if isinstance(value, dict):
        return {key: _render(item, values) for key, item in value.items()}
    return value


def _fill(text: str, values: Mapping[str, str]) -> str:
    """Plain replacement, not `str.format`: shell commands are full of braces of their own."""
    if "{" not in text:
        return text
    for name, value in values.items():
        text = text.replace(name, value)
    return text
