"""Public test tools: a scripted model server on loopback that implements the APIs of Anthropic and OpenAI.

    async with ScriptedModel({"hello": replies([text("Hi")])}) as model:
        ...  # use a client with base_url=model.url or model.openai_url, and a prompt with [[script:hello]]

The same scripts serve Anthropic's Messages API and OpenAI's Chat Completions and Responses APIs. Replies can be
streamed or sent in one piece. `script_json` documents the file format of scripts.

`model_process.ModelProcess` runs the server in a separate process, and `sdk_validation` checks responses
against the official SDK.
"""

from footplate.testing.model_scripts import Replies, Reply, Request, Script, ScriptError, replies, reply
from footplate.testing.reply_steps import (
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
from footplate.testing.scripted_model import ScriptedModel
from footplate.testing.server.request_journal import Record

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
