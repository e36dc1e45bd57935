"""Hooks of a turn run with every harness: on prompts before attachments are fetched, and on pending approvals."""

from typing import cast

import pytest
from tests.unit.engine.fake_resources import NoAttachmentSources

from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.errors import PromptBlocked
from footplate.domain.json import JsonObject
from footplate.domain.policy.hooks import HookEvent, HookFeedback
from footplate.domain.ports.engine import OpenEnvironment
from footplate.domain.sessions import events as ev
from footplate.engine.turn.attachments import TurnAttachments
from footplate.engine.turn.prompt_and_approval_hooks import TurnHooks
from footplate.testing.scripted_gate import ScriptedGate

CONFIG = ResolvedConfig(harness="native", model="m", system="")
PROMPT = [ev.text_block("Hello"), ev.text_block("there")]
UNKNOWN: JsonObject = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}


def make_turn_hooks(gate: ScriptedGate) -> TurnHooks:
    return TurnHooks(
        gate, TurnAttachments(NoAttachmentSources(), "org", CONFIG, cast("OpenEnvironment", None), gate, "anthropic")
    )


@pytest.mark.requirement("S7")
async def test_hooks_receive_the_prompt_and_add_text_to_it() -> None:
    gate = ScriptedGate(hook_feedback={HookEvent.PROMPT: [HookFeedback(messages=("It is Sunday.",))]})
    assert await make_turn_hooks(gate).resolve_attachments(PROMPT) == [*PROMPT, ev.text_block("It is Sunday.")]
    assert await make_turn_hooks(gate).resolve_steering(PROMPT) == PROMPT
    assert gate.hook_events == [(HookEvent.PROMPT, {"prompt": "Hello\nthere"})] * 2


async def test_a_prompt_that_hooks_block_is_not_resolved() -> None:
    gate = ScriptedGate(hook_feedback={HookEvent.PROMPT: [HookFeedback("a secret is in it")] * 2})
    with pytest.raises(PromptBlocked) as caught:
        await make_turn_hooks(gate).resolve_attachments([*PROMPT, UNKNOWN])
    assert "a secret is in it" in caught.value.message
    (block,) = await make_turn_hooks(gate).resolve_steering([*PROMPT, UNKNOWN])
    assert "a secret is in it" in str(block["text"])
    assert "Hello" not in str(block)


async def test_a_pending_approval_runs_notification_hooks() -> None:
    gate = ScriptedGate()
    await make_turn_hooks(gate).notify_approval_needed(["bash", "write"])
    ((event, fields),) = gate.hook_events
    assert (event, fields["notification_type"]) == (HookEvent.NOTIFICATION, "permission_prompt")
    assert "bash, write" in str(fields["message"])
