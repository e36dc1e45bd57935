r"""References to the results of earlier steps, such as `${steps.build.stdout}`, and conditions in CEL. A reference such
as `${steps.work.sessions.first.text}` is to the result of one session of a parallel step. In the steps of a trigger, a
reference such as `${payload.repository.name}` is to a value of what was delivered (`triggers.py`).

In a prompt, a reference is replaced by the text of the result. In a shell command, it must be a whole word outside of
quotes, which the gate checks (`gate/shell/step_references.py`), and becomes one quoted word. A reference cannot be
escaped.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from footplate.domain.errors import InvalidRequest, Permanent
from footplate.domain.json import Json, JsonObject

if TYPE_CHECKING:
    from cel_expr_python import cel

FIELDS: Final = ("status", "stdout", "stderr", "exit_code", "duration_ms", "error_message", "text")
SESSION_FIELDS: Final = ("text", "outcome", "session_id", "error")
NAME_PATTERN: Final = r"[a-z_][a-z0-9_]{0,63}"
MAX_CONDITION: Final = 2000
_OPENING: Final = "${steps"
_SESSION: Final = r"(?:sessions\.(" + NAME_PATTERN + r"|\d{1,3})\.)?"
_REFERENCE: Final = re.compile(r"\$\{steps\.(" + NAME_PATTERN + r")\." + _SESSION + r"([a-z_]+)\}")
PAYLOAD_OPENING: Final = "${payload"
_PAYLOAD_REFERENCE: Final = re.compile(r"\$\{payload((?:\.[A-Za-z0-9_-]{1,100}){0,20})\}")
_LIBRARY_PREFIX: Final = re.compile(r"^[A-Z_]+: (?:ERROR: <input>:[-\d]+:[-\d]+: )?")
_NAME_IN_CONDITION: Final = re.compile(r"\bsteps\s*(?:\.\s*|\[\s*[\"'])(" + NAME_PATTERN + ")")


class Reference(NamedTuple):
    step: str
    field: str
    start: int
    end: int
    session: str | None = None
    """The name of a session of a parallel step, or its index."""
    path: str | None = None
    """For a value of a payload: the keys and indexes that lead to it, separated by dots. Empty: the whole payload."""

    @property
    def text(self) -> str:
        if self.path is not None:
            return f"${{payload.{self.path}}}" if self.path else "${payload}"
        session = "" if self.session is None else f"sessions.{self.session}."
        return f"${{steps.{self.step}.{session}{self.field}}}"


def find_references(text: str, *, where: str, with_payload: bool = False) -> list[Reference]:
    """Return the references in a text. Raises `InvalidRequest` for one that is malformed; `where` names the field.
    `with_payload`: also those to values of a payload, which are plain text in any other step.
    """
    found = [Reference(match[1], match[3], match.start(), match.end(), match[2]) for match in _REFERENCE.finditer(text)]
    for reference in found:
        fields, noun = (FIELDS, "step") if reference.session is None else (SESSION_FIELDS, "session")
        if reference.field not in fields:
            raise InvalidRequest(
                f"{where}: the result of a {noun} has no field {reference.field!r}",
                field=where,
                help_text=f"The fields are {', '.join(fields)}.",
            )
    if text.count(_OPENING) != len(found):
        raise InvalidRequest(
            f"{where}: a reference to a step must have the form ${{steps.NAME.FIELD}}",
            field=where,
            help_text="NAME has lower-case letters, digits and underscores. FIELD is one of " + ", ".join(FIELDS) + ". "
            "For a session of a parallel step, write ${steps.NAME.sessions.SESSION.FIELD}.",
        )
    return sorted([*found, *_find_payload_references(text, where)], key=_start_of) if with_payload else found


def _find_payload_references(text: str, where: str) -> list[Reference]:
    matches = [*_PAYLOAD_REFERENCE.finditer(text)]
    if text.count(PAYLOAD_OPENING) != len(matches):
        raise InvalidRequest(
            f"{where}: a reference to the payload must have the form ${{payload.KEY}} or ${{payload.KEY.KEY}}",
            field=where,
            help_text="KEY is a key of an object, with letters, digits, `_` and `-`, or an index of a list from 0.",
        )
    return [Reference("", "", match.start(), match.end(), path=match[1].removeprefix(".")) for match in matches]


def _start_of(reference: Reference) -> int:
    return reference.start


def find_session(sessions: Sequence[JsonObject], wanted: str) -> JsonObject | None:
    """Return the result of a session of a parallel step, by its name or index. Of several with one name, the last."""
    if wanted.isdigit():
        return sessions[int(wanted)] if int(wanted) < len(sessions) else None
    return next((session for session in reversed(sessions) if session.get("name") == wanted), None)


def replace_references(text: str, value_of: Callable[[Reference], str], *, with_payload: bool = False) -> str:
    """Replace each reference by its value. References in a value are not replaced."""
    return "".join(_replaced_parts(text, value_of, with_payload))


def _replaced_parts(text: str, value_of: Callable[[Reference], str], with_payload: bool) -> Iterator[str]:  # noqa: FBT001
    end = 0
    for reference in find_references(text, where="step", with_payload=with_payload):
        yield text[end : reference.start]
        yield value_of(reference)
        end = reference.end
    yield text[end:]


def names_in_condition(expression: str) -> set[str]:
    """Return the names of the steps that a condition may refer to."""
    return {match[1] for match in _NAME_IN_CONDITION.finditer(expression)}


@cache
def _environment(variable: str) -> "cel.Env":
    from cel_expr_python import cel

    return cel.NewEnv(variables={variable: cel.Type.DYN})


def check_condition(expression: str, *, where: str, variable: str = "steps") -> None:
    """Raise `InvalidRequest` if a condition is not valid. `variable`: `steps`, or `payload` for one of a trigger."""
    try:
        _environment(variable).compile(expression)
    except RuntimeError as error:
        raise InvalidRequest(
            f"{where}: not a valid CEL expression: {_first_line(error)}",
            field=where,
            help_text=f"For example: {_EXAMPLES[variable]}",
        ) from error


def evaluate_condition(expression: str, results: Mapping[str, Json], *, variable: str = "steps") -> bool:
    """Evaluate a condition. Raises `Permanent` if it has no value, or one that is neither true nor false."""
    try:
        data: dict[str, Json] = {variable: {**results}}
        value = _environment(variable).compile(expression).eval(data=data)
        found = value.value()
    except (RuntimeError, OverflowError, TypeError, ValueError) as error:
        raise Permanent(f"The condition {expression!r} cannot be evaluated: {_first_line(error)}") from error
    if not isinstance(found, bool):
        raise Permanent(
            f"The condition {expression!r} is neither true nor false, but {str(found)[:200]!r}.",
            help_text=_ABSENCE_HELP[variable],
        )
    return found


_EXAMPLES: Final[Mapping[str, str]] = {
    "steps": 'steps.build.exit_code == 0 && steps.test.status == "completed"',
    "payload": 'payload.action == "opened" && has(payload.pull_request)',
}
_ABSENCE_HELP: Final[Mapping[str, str]] = {
    "steps": "A step that has not run has no result. Use has(steps.NAME) to test for it.",
    "payload": "Use has(payload.KEY) to test for a value that may be missing.",
}


def _first_line(error: Exception) -> str:
    """Return the library's message without its error class, the name that it gives the text, and the list of symbols
    that its parser expects.
    """
    line = _LIBRARY_PREFIX.sub("", str(error).partition("\n")[0]).partition(" expecting ")[0]
    return line.replace("mismatched input '<EOF>'", "the expression is not complete")[:300]
