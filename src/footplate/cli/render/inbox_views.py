"""Prints the inbox, comments on lines of diffs, and session templates."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from footplate.cli.render import terminal_io, value_formatting
from footplate.cli.render.table_printing import Cell, UntrustedText, print_details, print_rows
from footplate.cli.render.terminal_io import print_note
from footplate.client import InboxItem, SessionComment, SessionTemplate
from footplate.domain.text.visible_text import show_line

_KINDS: Final = {
    "approval": "approve",
    "question": "answer",
    "failure": "failed",
    "merge_conflict": "conflict",
}
_MAX_PERSON_LENGTH: Final = 30


def print_items(found: Sequence[InboxItem]) -> None:
    if not found:
        print_note("Nothing waits for you.")
        return
    rows: list[list[Cell]] = [
        [
            item.id,
            _KINDS.get(item.kind, item.kind),
            value_formatting.format_age(item.created_at),
            item.session.id,
            terminal_io.escape_shown(describe_state(item)),
            UntrustedText(item.title),
        ]
        for item in found
    ]
    print_rows(["ID", "WHAT", "AGE", "SESSION", "STATE", "TITLE"], rows)
    print_note(
        "Decide with `footplate approve ID` or `deny ID`, answer with `footplate answer ID`, look at a failure with "
        "`footplate logs SESSION`."
    )


def describe_state(item: InboxItem) -> str:
    """Describes who an item is assigned to, and until when it is snoozed."""
    parts = []
    if item.assignee is not None:
        parts.append(f"assigned to {show_line(item.assignee.name or item.assignee.id, _MAX_PERSON_LENGTH)}")
    if item.snoozed_until is not None and item.snoozed_until > datetime.now(UTC):
        parts.append(f"snoozed until {item.snoozed_until.astimezone():%Y-%m-%d %H:%M}")
    return ", ".join(parts) or "open"


def print_comments(found: Sequence[SessionComment]) -> None:
    if not found:
        print_note("No comments. Add one: footplate comments add FILE LINES TEXT")
        return
    for comment in found:
        print_comment(comment)
        terminal_io.out().print()
    if any(comment.sent_event_id is None for comment in found):
        print_note("Send your drafts to the agent with `footplate comments send`.")


def print_comment(comment: SessionComment) -> None:
    lines = (
        f"{comment.start_line}"
        if comment.start_line == comment.end_line
        else (f"{comment.start_line}-{comment.end_line}")
    )
    print_details(
        {
            "id": comment.id,
            "state": "draft" if comment.sent_event_id is None else f"sent in {comment.sent_event_id}",
            "author": UntrustedText(comment.author.name or comment.author.id),
            "lines": UntrustedText(f"{comment.path}:{lines}", " before the change" if comment.side == "old" else ""),
            "code": UntrustedText(comment.code),
            "comment": UntrustedText(comment.body),
        }
    )


def print_templates(found: Sequence[SessionTemplate]) -> None:
    if not found:
        print_note("No templates. Create one: footplate templates create NAME --session FILE")
        return
    rows: list[list[Cell]] = [
        [each.id, value_formatting.format_age(each.created_at), UntrustedText(each.name)] for each in found
    ]
    print_rows(["ID", "AGE", "NAME"], rows)


def print_template(template: SessionTemplate) -> None:
    print_details(
        {
            "id": template.id,
            "name": UntrustedText(template.name),
            "description": UntrustedText(template.description or ""),
            "session": UntrustedText(json.dumps(template.session, indent=2, ensure_ascii=False)),
            "archived": "" if template.archived_at is None else f"{template.archived_at:%Y-%m-%d %H:%M} UTC",
        }
    )
