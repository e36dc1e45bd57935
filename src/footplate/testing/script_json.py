"""Reads and writes the scripts of the scripted model, a model server for tests, as JSON. Unknown keys are rejected.

A script is `{"replies": [REPLY, …]}`, and a file is `{"scripts": {NAME: SCRIPT, …}}`. A reply is its list of steps, or
`{"steps": [STEP, …], "repeat": 12 | true, "first_attempts": [[STEP, …], …]}`. This example has twelve tool calls, each
rejected once, and a final text:

    {"scripts": {"lines": {"replies": [
        {"steps": [{"tool": "bash", "input": {"command": "echo {n} >> lines"}}], "repeat": 12,
         "first_attempts": [[{"http_error": 429, "retry_after": 0.5}]]},
        [{"text": "done", "chunks": 2, "delay": 0.1}, {"usage": {"input_tokens": 5, "output_tokens": 7}}]]}}}
"""

import dataclasses
import functools
import re
from pathlib import Path
from typing import Final, Literal

import orjson
from pydantic import TypeAdapter, ValidationError

from footplate.testing.model_scripts import Replies, Reply, ScriptError
from footplate.testing.reply_steps import STEP_KINDS, Step, Tokens

NAME: Final = re.compile(r"[\w.-]+")
_REPLY_KEYS: Final = frozenset({"steps", "repeat", "first_attempts"})


def load_file(path: Path) -> dict[str, Replies]:
    data = _decode(path.read_bytes())
    if not isinstance(data, dict) or set(data) != {"scripts"} or not isinstance(data["scripts"], dict):
        raise ScriptError(f'{path}: a script file must be {{"scripts": {{NAME: SCRIPT, …}}}}')
    return {check_name(name): parse_script(script, where=f"scripts.{name}") for name, script in data["scripts"].items()}


def loads(raw: bytes) -> Replies:
    return parse_script(_decode(raw))


def dumps(script: Replies) -> bytes:
    """Returns a script as JSON, for a server in another process. Only `Replies` can be converted, functions cannot."""
    return orjson.dumps(dataclasses.asdict(script))


def check_name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise ScriptError(f"{name!r} is not a valid script name: use only letters, digits, '_', '.' and '-'")
    return name


def parse_script(data: object, *, where: str = "script") -> Replies:
    if not isinstance(data, dict) or set(data) != {"replies"}:
        raise ScriptError(f'{where}: a script must be {{"replies": […]}}')
    items = _list(data["replies"], f"{where}.replies")
    return Replies(tuple(_reply(item, f"{where}.replies[{index}]") for index, item in enumerate(items)))


def _reply(data: object, where: str) -> Reply:
    if isinstance(data, list):
        return Reply(_steps(data, where))
    if not isinstance(data, dict) or "steps" not in data or not set(data) <= _REPLY_KEYS:
        raise ScriptError(
            f"{where}: a reply must be a list of steps, or an object with the key steps and "
            f"optionally other keys from {sorted(_REPLY_KEYS)}"
        )
    attempts = _list(data.get("first_attempts", []), f"{where}.first_attempts")
    return Reply(
        steps=_steps(data["steps"], f"{where}.steps"),
        repeat=_repeat(data.get("repeat", 1), f"{where}.repeat"),
        first_attempts=tuple(_steps(item, f"{where}.first_attempts[{i}]") for i, item in enumerate(attempts)),
    )


def _repeat(value: object, where: str) -> int | Literal[True]:
    if value is True:
        return True
    if isinstance(value, int) and value >= 1:
        return int(value)
    raise ScriptError(f"{where}: expected an integer of at least 1, or true to repeat forever")


def _steps(data: object, where: str) -> tuple[Step, ...]:
    return tuple(_step(item, f"{where}[{index}]") for index, item in enumerate(_list(data, where)))


def _step(data: object, where: str) -> Step:
    kind = next((key for key in STEP_KINDS if key in data), None) if isinstance(data, dict) else None
    if not isinstance(data, dict) or kind is None:
        raise ScriptError(f"{where}: a step must be an object with one of the keys {list(STEP_KINDS)}")
    _check_keys(data, STEP_KINDS[kind], where)
    if kind == "usage":
        _check_keys(data[kind], Tokens, f"{where}.usage")
    try:
        return _adapter(kind).validate_json(orjson.dumps(data), strict=True)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ScriptError(f"{where} ({kind}): {faults}") from error


def _check_keys(data: object, step: type[Step | Tokens], where: str) -> None:
    known = [field.name for field in dataclasses.fields(step)]
    if isinstance(data, dict) and (unknown := sorted(set(data) - set(known))):
        raise ScriptError(f"{where}: unknown keys {unknown}; known keys: {known}")


@functools.cache
def _adapter(kind: str) -> TypeAdapter[Step]:
    return TypeAdapter(STEP_KINDS[kind])


def _list(data: object, where: str) -> list[object]:
    if not isinstance(data, list):
        raise ScriptError(f"{where}: expected a list")
    return data


def _decode(raw: bytes) -> object:
    try:
        data: object = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ScriptError(f"not JSON: {error}") from error
    return data
