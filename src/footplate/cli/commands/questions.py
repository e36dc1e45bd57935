"""Defines `footplate questions` and `answer`. Each command imports its implementation only when it runs, so that every
command starts quickly.
"""

from typing import Annotated

import typer

from footplate.cli import options


def questions(
    session: Annotated[
        str | None, typer.Option("--session", "-s", metavar="ID", help="List only the questions of this session.")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List the questions that agents ask in all sessions, oldest first."""
    from footplate.cli.actions import questions as actions

    actions.list_questions(session, as_json=as_json, profile=profile)


def answer(
    question_id: Annotated[
        str, typer.Argument(metavar="ID", help="ID of a pending question, as listed by `footplate questions`.")
    ],
    choices: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CHOICE]…",
            help="For each question in order: the number or label of an option, several of them separated by commas, "
            "or - for a --text.",
        ),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option("--text", "-t", metavar="TEXT", help="Answer with your own text. Repeatable."),
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Answer a question. Without a choice or a text, ask at the terminal. The session continues with the answer."""
    from footplate.cli.actions import questions as actions

    actions.send_reply(question_id, choices or [], text or [], as_json=as_json, profile=profile)
