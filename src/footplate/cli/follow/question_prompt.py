"""Asks the person at the terminal an agent's question."""

from footplate.cli.follow import approval_prompt
from footplate.cli.render import question_format, terminal_io
from footplate.client import Question, QuestionItem


async def ask_question(question: Question) -> dict[str, str | list[str]] | None:
    """Shows the question and returns the typed reply. None if the person leaves it pending."""
    approval_prompt.discard_typed_input()
    if not await approval_prompt.print_pages(question_format.render_question(question, terminal_io.err().width)):
        return None
    reply: dict[str, str | list[str]] = {}
    for item in question.questions:
        if (typed := await _ask_item(item, is_only=len(question.questions) == 1)) is None:
            return None
        reply[item.question] = typed
    return reply


async def _ask_item(item: QuestionItem, *, is_only: bool) -> str | list[str] | None:
    numbers = f"1-{len(item.options)}{', several with commas' if item.multi_select else ''}" if item.options else ""
    text = "your own text" if item.allow_free_text or not item.options else ""
    kinds = " or ".join(filter(None, (numbers, text)))
    subject = "Answer" if is_only else item.header or item.question
    while True:
        typed = await approval_prompt.ask_line(f"{subject} [{kinds}; Enter leaves it pending]", keeps_case=True)
        if not typed:
            return None
        try:
            return question_format.parse_choice(item, typed)
        except ValueError as error:
            if text and not typed.isdecimal():
                return typed
            terminal_io.print_error(f"{error}")
