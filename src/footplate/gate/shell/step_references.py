"""Substitutes the results of earlier steps, and values of a trigger's payload, into a shell command, each as exactly
one quoted word.

A reference must be a whole argument of a command, outside of quotes. The command line must be understood completely,
and must not run code from its arguments or its input. The result must have the same commands and the same number of
words as the text that the author wrote, so a value can never become a command. The gate then decides on the result as
on any other command.
"""

import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from footplate.domain.errors import InvalidRequest, Permanent
from footplate.domain.sessions.step_references import Reference, find_references, replace_references
from footplate.gate.shell import command_extraction
from footplate.gate.shell.nested_commands import collect_effects

MAX_VALUE_BYTES: Final = 100_000
"""Linux limits one argument of a program to 128 KiB."""
_FIELD: Final = "command"
_WORD_ENDS: Final = frozenset(" \t\n;|&)")


def check_command(command: str, *, with_payload: bool = False) -> None:
    """Raise `InvalidRequest` if a reference in the command is in a place where it is not allowed."""
    if references := find_references(command, where=_FIELD, with_payload=with_payload):
        _read_template(command, references, with_payload=with_payload)


def substitute_references(command: str, value_of: Callable[[Reference], str], *, with_payload: bool = False) -> str:
    """Return the command with the values. Raises `Permanent` if a value would change which commands run."""
    references = find_references(command, where=_FIELD, with_payload=with_payload)
    if not references:
        return command
    values = {reference.text: _check_value(reference, value_of(reference)) for reference in references}
    placeholders, template = _read_template(command, references, with_payload=with_payload)
    result = replace_references(
        command, lambda reference: shlex.quote(values[reference.text]), with_payload=with_payload
    )
    by_placeholder = {placeholder: values[text] for placeholder, text in placeholders.items()}
    expected = [[by_placeholder.get(word, word) for word in words] for words in template]
    for words in template:
        _check_options(words, by_placeholder)
    actual, problem = _read_words(result)
    if actual != expected or problem is not None:
        raise Permanent(
            f"With the values of its references, the command would do something else than what was written: "
            f"{problem or 'its words differ'}.",
            help_text="Write the result to a file in the earlier step, and read the file in this one.",
        )
    return result


def _read_template(
    command: str, references: Sequence[Reference], *, with_payload: bool
) -> tuple[dict[str, str], list[list[str]]]:
    """Return a placeholder for each reference, and the words of all commands with the placeholders."""
    prefix = f"ref{secrets.token_hex(8)}x"
    names = iter([f"{prefix}{number}" for number in range(len(references))])
    placeholders: dict[str, str] = {}

    def use_placeholder(reference: Reference) -> str:
        placeholders[name := next(names)] = reference.text
        return name

    template = replace_references(command, use_placeholder, with_payload=with_payload)
    commands, problem = _read_words(template)
    arguments = [word for words in commands for word in words[1:]]
    for placeholder, text in placeholders.items():
        start = template.index(placeholder)
        before, after = template[start - 1 : start], template[start + len(placeholder) :][:1]
        if arguments.count(placeholder) != 1 or before not in {" ", "\t", "\n"} or after not in {"", *_WORD_ENDS}:
            problem = problem or f"{text} is not a whole argument outside of quotes"
    if problem is not None:
        raise InvalidRequest(
            f"{_FIELD}: a reference to {'a step or the payload' if with_payload else 'a step'} cannot be used here: "
            f"{problem}",
            field=_FIELD,
            help_text="Use it as a whole argument, without quotes, of a command that does not run other commands, such "
            "as `grep -c ${steps.build.stdout} report.txt`.",
        )
    return placeholders, commands


def _read_words(command: str) -> tuple[list[list[str]], str | None]:
    """Return the words of each command, and why the command line is not fully understood, or runs other code."""
    script = command_extraction.parse_script(command)
    problems = [*script.faults]
    for simple in script.commands:
        problems += [concern.text for concern in collect_effects(simple).concerns]
    return [[word.text for word in simple.words] for simple in script.commands], problems[0] if problems else None


def _check_options(words: Sequence[str], values: Mapping[str, str]) -> None:
    """Raise `Permanent` for a value that the program would take for an option, which may make it run code."""
    for index, word in enumerate(words):
        if values.get(word, "").startswith(("-", "+")) and "--" not in words[:index]:
            raise Permanent(
                f"The result {values[word][:40]!r} would be an option of {words[0]!r}.",
                help_text="Write `--` before the reference, if the program accepts that.",
            )


def _check_value(reference: Reference, value: str) -> str:
    if "\0" in value:
        raise Permanent(f"The value of {reference.text} contains a NUL character, which no argument can contain.")
    if (size := len(value.encode())) > MAX_VALUE_BYTES:
        raise Permanent(
            f"The value of {reference.text} has {size} bytes. An argument of a command has at most {MAX_VALUE_BYTES}.",
            help_text="Write the result to a file in the earlier step, and read the file in this one.",
        )
    return value
