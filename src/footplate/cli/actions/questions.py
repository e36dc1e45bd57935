"""Implements the commands `footplate questions` and `answer`."""

from collections.abc import Sequence

import typer

from footplate.cli.connection import run_with_client
from footplate.cli.follow import approval_prompt, question_prompt
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import question_format, resource_tables, terminal_io
from footplate.cli.render.terminal_io import Exit, print_json
from footplate.client import AsyncFootplate, Question

_TEXT_MARK = "-"


def list_questions(session: str | None, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[Question]:
        return [question async for question in client.questions.list(limit=100, session_id=session)]

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([question.wire() for question in found])
    else:
        resource_tables.print_questions(found)


def send_reply(
    question_id: str, choices: Sequence[str], texts: Sequence[str], *, as_json: bool, profile: str | None
) -> None:
    """Sends the given choices and texts, or asks at the terminal if there are none."""
    if not (choices or texts) and not approval_prompt.can_ask():
        raise typer.BadParameter("An answer is required. Without a terminal, give a choice or --text.")

    async def work(client: AsyncFootplate, _server: Server) -> Question:
        question = await client.questions.retrieve(question_id)
        reply: dict[str, str | list[str]] | None = None
        if choices or texts:
            reply = build_reply(question, choices, texts)
        elif question.status == "pending":
            reply = await question_prompt.ask_question(question)
        if reply is not None:
            await client.questions.send_reply(question.id, reply)
        return await client.questions.retrieve(question.id)

    question = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(question.wire())
    else:
        terminal_io.print_result(f"{question.id} {question.status}")
    if question.status == "pending":
        raise typer.Exit(Exit.NEEDS_ACTION)


def build_reply(question: Question, choices: Sequence[str], texts: Sequence[str]) -> dict[str, str | list[str]]:
    """Returns the reply from one choice for each question, in order. Texts serve the questions whose choice is `-` or
    missing.
    """
    items, remaining = question.questions, iter(texts)
    given = [*choices, *[_TEXT_MARK] * (len(items) - len(choices))]
    if len(given) > len(items) or given.count(_TEXT_MARK) != len(texts):
        wanted = f"{len(items)} question{'s'[: len(items) > 1]}"
        raise typer.BadParameter(
            f"{question.id} has {wanted}: give one choice for each, in order, or --text for those without a choice"
        )
    try:
        return {
            item.question: next(remaining) if choice == _TEXT_MARK else question_format.parse_choice(item, choice)
            for item, choice in zip(items, given, strict=True)
        }
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
