"""Questions that an agent asks a person with the tool `ask_user`: checks of a reply, defaults, and the model's texts.

A question is the event of a custom tool call with an extra field, so that clients of the reference API can answer it.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject, as_objects
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event

Reply: TypeAlias = Mapping[str, str | list[str]]
"""For each question's text: the label of an option, several labels, or a free text."""

ASK_USER: Final = "ask_user"
_MAX_TEXT_CHARACTERS: Final = 10_000
_RECOMMENDED: Final = "(Recommended)"
"""Claude Code asks its model to end the label of the option that it recommends with this text."""
_EXPIRED: Final = "No one answered in time."
_BACKGROUND: Final = "This session runs in the background, where no one answers questions."
_NO_DEFAULT: Final = "Decide without an answer, and state what you assumed."


def question(call_input: JsonObject, *, call_id: str) -> Event:
    """Build the event that asks the question and that `user.custom_tool_result` answers."""
    asked = ev.custom_tool_use(ASK_USER, call_input, call_id=call_id)
    return Event(asked.type, {**asked.body, "question": True}, asked.id)


def result_fields(event_id: str, call_input: Mapping[str, Json], reply: Reply) -> JsonObject:
    """Check a person's reply and return the fields of the `user.custom_tool_result` event. Raise `InvalidRequest` if
    the reply does not fit the questions.
    """
    checked = check_reply(call_input, reply)
    text = f"Your questions have been answered: {_join(checked)}. You can now continue with these answers in mind."
    return _result(event_id, text, checked)


def expiry_fields(event_id: str, call_input: Mapping[str, Json]) -> JsonObject:
    """Return the fields of the `user.custom_tool_result` event for a question whose deadline has passed."""
    default = default_reply(call_input)
    return _result(event_id, _text_without_person(_EXPIRED, default), default)


def background_text(call_input: Mapping[str, Json]) -> str:
    """Return the result of a question in a background session, for the model."""
    return _text_without_person(_BACKGROUND, default_reply(call_input))


def default_reply(call_input: Mapping[str, Json]) -> dict[str, str]:
    """Return the reply that counts if no person answers: the question's `default`, or else the options that the agent
    recommends. Empty if a question has neither.
    """
    default = call_input.get("default")
    if isinstance(default, dict):
        return {name: _to_text(value) for name, value in default.items()}
    recommended = {
        name: [label for label in _labels(item) if label.endswith(_RECOMMENDED)]
        for name, item in _by_text(call_input).items()
    }
    return {name: ", ".join(labels) for name, labels in recommended.items()} if all(recommended.values()) else {}


def check_reply(call_input: Mapping[str, Json], reply: Reply) -> dict[str, str]:
    """Return the reply as one text for each question. Raise `InvalidRequest` if it does not fit the questions."""
    asked = _by_text(call_input)
    for name in [*asked.keys() - reply.keys(), *reply.keys() - asked.keys()]:
        problem = "is not answered" if name in asked else "is not one of the questions"
        raise _invalid(f"{name!r} {problem}", f"Answer each of the questions by its text: {_list(asked)}.")
    for name, item in asked.items():
        value = reply[name]
        labels, chosen = _labels(item), value if isinstance(value, list) else [value]
        if isinstance(value, list) and not item.get("multi_select"):
            raise _invalid(f"{name!r} has one answer, not a list", "Send the label of one option, or a text.")
        if not chosen or not all(each.strip() for each in chosen):
            raise _invalid(f"{name!r} needs a label, a list of labels or a text", f"Its options: {_list(labels)}.")
        if item.get("allow_free_text") is False and labels and not {*chosen} <= {*labels}:
            raise _invalid(f"{name!r} accepts only its options", f"Its options: {_list(labels)}.")
        if len(_to_text(value)) > _MAX_TEXT_CHARACTERS:
            raise _invalid(f"{name!r} has more than {_MAX_TEXT_CHARACTERS} characters", "Send a shorter text.")
    return {name: _to_text(reply[name]) for name in asked}


def _result(event_id: str, text: str, reply: Mapping[str, str]) -> JsonObject:
    answers: JsonObject = {"answers": {**reply}} if reply else {}
    return {
        "custom_tool_use_id": event_id,
        "content": [ev.text_block(text)],
        "is_error": False,
        **answers,
    }


def _text_without_person(reason: str, default: Mapping[str, str]) -> str:
    return f"{reason} {f'The default applies: {_join(default)}.' if default else _NO_DEFAULT}"


def _join(reply: Mapping[str, str]) -> str:
    """Return the reply in the form that Claude Code gives to its model."""
    return ", ".join(f'"{name}"="{text}"' for name, text in reply.items())


def _by_text(call_input: Mapping[str, Json]) -> dict[str, JsonObject]:
    return {str(item.get("question")): item for item in as_objects(call_input.get("questions"))}


def _labels(item: Mapping[str, Json]) -> list[str]:
    return [str(option.get("label")) for option in as_objects(item.get("options"))]


def _to_text(value: object) -> str:
    return ", ".join(str(each) for each in value) if isinstance(value, list) else str(value)


def _list(names: "list[str] | dict[str, JsonObject]") -> str:
    return ", ".join(repr(name) for name in names) or "none"


def _invalid(problem: str, help_text: str) -> InvalidRequest:
    return InvalidRequest(f"answers: {problem}", field="answers", help_text=help_text)
