"""Wire models of questions that agents ask a person."""

from typing import Annotated

from pydantic import Field

from footplate.api.wire.request_base import Body, Text, optional_timestamp, timestamp
from footplate.domain.json import Json, JsonObject, as_object, as_objects
from footplate.domain.policy.approvals import Approval
from footplate.domain.sessions.questions import default_reply


class QuestionReply(Body):
    answers: Annotated[
        dict[Text, Text | list[Text]],
        Field(
            description="For each question's text: the label of an option, a list of labels if it allows several, or "
            "a free text.",
        ),
    ]


def serialize_question(question: Approval) -> JsonObject:
    call_input = as_object(question.body.get("input"))
    return {
        "id": question.id,
        "type": "question",
        "status": question.status,
        "session_id": question.session_id,
        "session_title": question.title,
        "turn_id": question.turn_id,
        "questions": [_serialize_item(item) for item in as_objects(call_input.get("questions"))],
        "default": {**default_reply(call_input)} or None,
        "answers": question.reply,
        "created_at": timestamp(question.created_at),
        "expires_at": optional_timestamp(question.expires_at),
        "closed_at": optional_timestamp(question.closed_at),
        "answered_by": question.principal,
    }


def _serialize_item(item: JsonObject) -> Json:
    return {
        "question": item.get("question"),
        "header": item.get("header"),
        "options": [
            {name: option.get(name) for name in ("label", "description", "preview")}
            for option in as_objects(item.get("options"))
        ],
        "multi_select": item.get("multi_select") is True,
        "allow_free_text": item.get("allow_free_text") is not False,
    }
