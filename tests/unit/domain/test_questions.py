"""Replies to questions are checked, and each becomes one text for the model."""

import pytest

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.sessions import questions
from footplate.domain.sessions.questions import Reply

COLOUR: JsonObject = {"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}
SIZES: JsonObject = {
    "question": "Which sizes?",
    "options": [{"label": "S"}, {"label": "L (Recommended)"}],
    "multi_select": True,
    "allow_free_text": False,
}
NAME: JsonObject = {"question": "What name?"}
INPUT: JsonObject = {"questions": [COLOUR, SIZES, NAME]}
REPLY: Reply = {"Which sizes?": ["S", "L (Recommended)"], "Which colour?": "Green", "What name?": "Ada"}


def test_a_reply_has_choices_and_free_text() -> None:
    fields = questions.result_fields("sevt_1", INPUT, REPLY)
    assert fields["answers"] == {"Which colour?": "Green", "Which sizes?": "S, L (Recommended)", "What name?": "Ada"}
    assert fields["content"] == [
        {
            "type": "text",
            "text": 'Your questions have been answered: "Which colour?"="Green", "Which sizes?"="S, L (Recommended)", '
            '"What name?"="Ada". You can now continue with these answers in mind.',
        }
    ]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"Which sizes?": None}, "'Which sizes?' is not answered"),
        ({"Which shape?": "Round"}, "'Which shape?' is not one of the questions"),
        ({"Which colour?": ["Red"]}, "'Which colour?' has one answer, not a list"),
        ({"Which colour?": " "}, "'Which colour?' needs a label, a list of labels or a text"),
        ({"Which sizes?": []}, "'Which sizes?' needs a label"),
        ({"Which sizes?": ["M"]}, "'Which sizes?' accepts only its options"),
        ({"What name?": "x" * 10_001}, "'What name?' has more than 10000 characters"),
    ],
)
def test_a_reply_that_does_not_fit_is_refused(changed: dict[str, str | list[str] | None], problem: str) -> None:
    reply = {name: value for name, value in {**REPLY, **changed}.items() if value is not None}
    with pytest.raises(InvalidRequest) as refused:
        questions.check_reply(INPUT, reply)
    assert refused.value.message.startswith(f"answers: {problem}")


def test_the_default_is_the_agents_or_its_recommendation() -> None:
    assert questions.default_reply(INPUT) == {}
    assert questions.default_reply({"questions": [SIZES]}) == {"Which sizes?": "L (Recommended)"}
    default: JsonObject = {"questions": [SIZES, NAME], "default": {"Which sizes?": ["S"], "What name?": "Bob"}}
    assert questions.expiry_fields("sevt_1", default)["answers"] == {"Which sizes?": "S", "What name?": "Bob"}
    assert questions.background_text(default).endswith('The default applies: "Which sizes?"="S", "What name?"="Bob".')
    assert "answers" not in questions.expiry_fields("sevt_1", INPUT)
    assert questions.background_text({"questions": []}).endswith("state what you assumed.")
