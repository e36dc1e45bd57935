"""Formats a question that an agent asks, so that its text cannot imitate other lines on the screen, and reads the
choices that a person types.
"""

from collections.abc import Sequence

from rich.text import Text

from footplate.cli.render.tool_call_format import lay_out_text
from footplate.client import Question, QuestionItem
from footplate.domain.text.visible_text import show_block

_INDENT = "     "


def render_question(question: Question, width: int) -> list[Text]:
    """Returns all lines: each question with its numbered options, and what happens without an answer."""
    lines = [line for item in question.questions for line in render_item(item, width)]
    if question.expires_at is not None:
        default = "; ".join(question.default.values()) if question.default else "none"
        note = f"Without an answer by {question.expires_at:%Y-%m-%d %H:%M} UTC, the default applies: {default}"
        lines += [Text(line, style="dim") for line in lay_out_text(show_block(note), width)]
    return lines


def render_item(item: QuestionItem, width: int) -> list[Text]:
    head = f"{item.header}: {item.question}" if item.header else item.question
    lines = [Text(line, style="yellow") for line in lay_out_text(show_block(head), width)]
    for number, option in enumerate(item.options, start=1):
        first, *more = lay_out_text(show_block(option.label), width - len(_INDENT))
        lines += [Text(f"  {number}. {first}"), *(Text(f"{_INDENT}{line}") for line in more)]
        for shown in filter(None, (option.description, option.preview)):
            laid_out = lay_out_text(show_block(shown), width - len(_INDENT))
            lines += [Text(f"{_INDENT}{line}", style="dim") for line in laid_out]
    return lines


def parse_choice(item: QuestionItem, typed: str) -> str | list[str]:
    """Returns the label or labels that a number, a label, or several of them separated by commas select. Raises
    `ValueError` with a message if they select none.
    """
    labels = [option.label for option in item.options]
    if (found := _find_label(labels, typed)) is not None:
        return [found] if item.multi_select else found
    chosen = [_find_label(labels, part) for part in typed.split(",")]
    if item.multi_select and None not in chosen:
        return [label for label in chosen if label is not None]
    hint = (
        f"Choose {'one or more of ' if item.multi_select else ''}1 to {len(labels)}" if labels else "It has no options"
    )
    raise ValueError(f"{typed!r} is not an option of {item.question!r}. {hint}.")


def _find_label(labels: Sequence[str], typed: str) -> str | None:
    typed = typed.strip()
    if typed.isdecimal() and 1 <= int(typed) <= len(labels):
        return labels[int(typed) - 1]
    return next((label for label in labels if label.casefold() == typed.casefold()), None)
