"""Public test tools: a scripted model server on loopback that speaks the APIs of Anthropic and of OpenAI.

    async with ScriptedModel({"hello": replies([text("Hi")])}) as model:
        ...  # a client with base_url=model.url, or model.openai_url, whose prompt holds [[script:hello]]

The same scripts answer Anthropic's Messages and OpenAI's Chat Completions and Responses, streamed or whole.

`script_json` documents scripts as files, `process.ModelProcess` is the server as a process of its own, and `strict`
checks what a server answers against the official SDK's models.
"""

from footplate.testing.journal import Record
from footplate.testing.model import ScriptedModel
from footplate.testing.scripts import Replies, Reply, Request, Script, ScriptError, replies, reply
from footplate.testing.steps import (
    Step,
    cut,
    hang,
    http_error,
    overloaded,
    rate_limited,
    server_error,
    sleep,
    stamps,
    stop,
    text,
    thinking,
    tool,
    unauthorized,
    usage,
)

__all__ = [
    "Record",
    "Replies",
    "Reply",
    "Request",
    "Script",
    "ScriptError",
    "ScriptedModel",
    "Step",
    "cut",
    "hang",
    "http_error",
    "overloaded",
    "rate_limited",
    "replies",
    "reply",
    "server_error",
    "sleep",
    "stamps",
    "stop",
    "text",
    "thinking",
    "tool",
    "unauthorized",
    "usage",
]
