r"""References to the results of earlier steps, such as `${steps.build.stdout}`, and conditions in CEL. A reference such
as `${steps.work.sessions.first.text}` is to the result of one session of a parallel step.

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
_LIBRARY_PREFIX: Final = re.compile(r"^[A-Z_]+: (?:ERROR: <input>:[-\d]+:[-\d]+: )?")
_NAME_IN_CONDITION: Final = re.compile(r"\bsteps\s*(?:\.\s*|\[\s*[\"'])(" + NAME_PATTERN + ")")


class Reference(NamedTuple):
    step: str
    field: str
    start: int
    end: int
    session: str | None = None
    """The name of a session of a parallel step, or its index."""

    @property
    def text(self) -> str:
        session = "" if self.session is None else f"sessions.{self.session}."
        return f"${{steps.{self.step}.{session}{self.field}}}"


def find_references(text: str, *, where: str) -> list[Reference]:
    """Return the references in a text. Raises `InvalidRequest` for one that is malformed; `where` names the field."""
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
    return found


def find_session(sessions: Sequence[JsonObject], wanted: str) -> JsonObject | None:
    """Return the result of a session of a parallel step, by its name or index. Of several with one name, the last."""
    if wanted.isdigit():
        return sessions[int(wanted)] if int(wanted) < len(sessions) else None
    return next((session for session in reversed(sessions) if session.get("name") == wanted), None)


def replace_references(text: str, value_of: Callable[[Reference], str]) -> str:
    """Replace each reference by its value. References in a value are not replaced."""
    return "".join(_replaced_parts(text, value_of))


def _replaced_parts(text: str, value_of: Callable[[Reference], str]) -> Iterator[str]:
    end = 0
    for reference in find_references(text, where="step"):
        yield text[end : reference.start]
        yield value_of(reference)
        end = reference.end
    yield text[end:]


def names_in_condition(expression: str) -> set[str]:
    """Return the names of the steps that a condition may refer to."""
    return {match[1] for match in _NAME_IN_CONDITION.finditer(expression)}


@cache
def _environment() -> "cel.Env":
    from cel_expr_python import cel

    return cel.NewEnv(variables={"steps": cel.Type.DYN})


def check_condition(expression: str, *, where: str) -> None:
    """Raise `InvalidRequest` if a condition is not valid."""
    try:
        _environment().compile(expression)
    except RuntimeError as error:
        raise InvalidRequest(
            f"{where}: not a valid CEL expression: {_first_line(error)}",
            field=where,
            help_text='For example: steps.build.exit_code == 0 && steps.test.status == "completed"',
        ) from error


def evaluate_condition(expression: str, results: Mapping[str, JsonObject]) -> bool:
    """Evaluate a condition. Raises `Permanent` if it has no value, or one that is neither true nor false."""
    try:
        data: dict[str, Json] = {"steps": {**results}}
        value = _environment().compile(expression).eval(data=data)
        found = value.value()
    except RuntimeError as error:
        raise Permanent(f"The condition {expression!r} cannot be evaluated: {_first_line(error)}") from error
    if not isinstance(found, bool):
        raise Permanent(
            f"The condition {expression!r} is neither true nor false, but {str(found)[:200]!r}.",
            help_text="A step that has not run has no result. Use has(steps.NAME) to test for it.",
        )
    return found


def _first_line(error: Exception) -> str:
    """Return the library's message without its error class and the name that it gives the text."""
    return _LIBRARY_PREFIX.sub("", str(error).partition("\n")[0])[:300]
