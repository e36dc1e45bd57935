"""Defines scripts for the scripted model, a model server for tests that sends prepared replies. A script is a sync or
async function that takes a `Request` and returns the steps of the reply.

`Replies` is a script that can be written as JSON: a list of replies. In their texts and tool inputs, `{n}`, `{session}`
and `{script}` are replaced by the values of these fields of the request.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from footplate.domain.json import JsonObject
from footplate.testing import reply_steps as s
from footplate.testing.reply_steps import Step

DEFAULT_SCRIPT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for a reply as a script sees it, independent of the wire format."""

    script: str
    n: int
    """Index of the reply: the number of assistant messages since the prompt with the script's marker."""
    attempt: int
    """Number of earlier requests of this conversation with the same `n`. Above 0, the client is retrying."""
    session: str | None
    """The header `x-footplate-session`, or `x-claude-code-session-id`."""
    prompt: str
    """The text of the last user message that has text."""
    headers: Mapping[str, str]
    """Header names are in lower case."""
    body: JsonObject


Script: TypeAlias = Callable[[Request], Sequence[Step] | Awaitable[Sequence[Step]]]


class ScriptError(Exception):
    """The script has no reply. The client receives a 400 with this message, which is not retried."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply, sent `repeat` times in a row, or forever if `repeat` is true."""

    steps: tuple[Step, ...]
    repeat: int | Literal[True] = 1
    first_attempts: tuple[tuple[Step, ...], ...] = ()
    """Steps for the first attempts of this reply instead, such as an error that a retry overcomes."""


@dataclass(frozen=True, slots=True)
class Replies:
    """A script as a list of replies: reply 0 follows the prompt, reply 1 follows the first tool results, and so on."""

    replies: tuple[Reply, ...]

    def __call__(self, request: Request) -> Sequence[Step]:
        chosen = self._select_reply(request)
        early = chosen.first_attempts
        steps = early[request.attempt] if request.attempt < len(early) else chosen.steps
        values = {"{n}": str(request.n), "{session}": request.session or "", "{script}": request.script}
        return [_render_step(step, values) for step in steps]

    def _select_reply(self, request: Request) -> Reply:
        end = 0
        for reply in self.replies:
            if reply.repeat is True:
                return reply
            end += reply.repeat
            if request.n < end:
                return reply
        raise ScriptError(
            f"script {request.script!r} has {end} replies, but reply {request.n} (counted from 0) was requested"
        )


def reply(*steps: Step, repeat: int | Literal[True] = 1, first_attempts: Sequence[Sequence[Step]] = ()) -> Reply:
    return Reply(steps, repeat, tuple(tuple(attempt) for attempt in first_attempts))


def replies(*items: Reply | Sequence[Step]) -> Replies:
    return Replies(tuple(item if isinstance(item, Reply) else Reply(tuple(item)) for item in items))


def echo(request: Request) -> Sequence[Step]:
    """The script named `default`: a short reply that repeats the start of the prompt."""
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
    """Replaces names literally instead of with `str.format`, because shell commands contain braces."""
    if "{" not in text:
        return text
    for name, value in values.items():
        text = text.replace(name, value)
    return text
