"""Scenarios for every wire format: the scripted provider's replies and failures, and the events a client must receive.

The expected events are written out, so that formats that are all wrong in the same way do not pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bench.support.providers.site import Site
from footplate.domain.sessions import events as ev
from footplate.testing import (
    Replies,
    Step,
    cut,
    hang,
    http_error,
    rate_limited,
    replies,
    reply,
    server_error,
    stop,
    text,
    thinking,
    tool,
    unauthorized,
    usage,
)

MAX_FAILURES: Final = 2
RETRY_AFTER: Final = 3
"""In whole seconds, as in HTTP. Far longer than an immediate retry takes on a busy machine, so the wait is visible."""

_BEGIN: Final = (ev.USER_MESSAGE, ev.USER_MESSAGE, ev.STATUS_RUNNING)
_ASK: Final = (ev.MODEL_REQUEST_START,)
_ANSWERED: Final = (ev.MODEL_REQUEST_END,)
_FAILED: Final = (ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END)
_CALL: Final = (ev.AGENT_TOOL_USE, ev.AGENT_TOOL_RESULT)
_TRY_AGAIN: Final = (*_FAILED, ev.SESSION_ERROR, ev.STATUS_RESCHEDULED, ev.STATUS_RUNNING)
_SAY: Final = (*_ASK, ev.AGENT_MESSAGE, *_ANSWERED)
_END: Final = (ev.STATUS_IDLE,)
_BROKEN: Final = (*_BEGIN, *_TRY_AGAIN, *_SAY, *_END)
_GIVEN_UP: Final = (*_BEGIN, *_FAILED, ev.SESSION_ERROR, *_END)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    name: str
    script: Replies
    types: Sequence[str]
    """Types of all events from the message to idle, in order."""
    errors: Sequence[tuple[str, str]] = ()
    """The type and retry status of each `session.error`."""
    stop_reason: str = "end_turn"
    says: Sequence[str] = ()
    """The agent's messages."""
    results: Sequence[tuple[str, bool]] = ()
    """For each tool result: a part of its text, and whether the call failed."""
    requests: int = 1
    waits: float = 0.0
    """Minimum seconds between the first request and the second."""
    interrupted_at: str | None = None
    """The event after which the user interrupts."""
    asked: Sequence[str] = field(default_factory=tuple)
    """Paths that the web site must have received exactly once."""

    @property
    def script_name(self) -> str:
        return f"story-{self.name.replace(' ', '-')}"


def stories(site: Site) -> list[Story]:
    return [*_whole(site), *_broken(), *_given_up()]


def _whole(site: Site) -> list[Story]:
    return [
        Story(
            name="work",
            script=replies(
                [
                    thinking("Let me see.", chunks=3),
                    text("Looking.", chunks=2),
                    tool("bash", {"command": "echo scones | tee tea.txt"}, call_id="call_1"),
                    tool("read", {"file_path": "tea.txt"}, call_id="call_2"),
                    usage(1000, 100, cache_read=500),
                ],
                [tool("read", {"file_path": "missing"}, call_id="call_3"), usage(900, 10)],
                [thinking("So."), text("There are scones.")],
            ),
            types=(
                *_BEGIN,
                *(*_ASK, ev.AGENT_THINKING, ev.AGENT_MESSAGE, *_ANSWERED, *_CALL, *_CALL),
                *(*_ASK, *_ANSWERED, *_CALL),
                *(*_ASK, ev.AGENT_THINKING, ev.AGENT_MESSAGE, *_ANSWERED),
                *_END,
            ),
            says=["Looking.", "There are scones."],
            results=[("scones", False), ("scones", False), ("The file missing", True)],
            requests=3,
        ),
        Story(
            name="web",
            script=replies(
                [tool("web_search", {"query": "tea {session}"}, call_id="call_1")],
                [tool("web_fetch", {"url": f"{site.url}/menu?{{session}}"}, call_id="call_2")],
                [
                    tool("web_fetch", {"url": f"{site.url}/nothing?{{session}}"}, call_id="call_3"),
                    tool("web_fetch", {"url": f"{site.url.replace('127.0.0.1', '127.0.0.2')}/x"}, call_id="call_4"),
                    tool("web_fetch", {"url": "file:///etc/passwd"}, call_id="call_5"),
                ],
                [text("They have scones.")],
            ),
            types=(
                *_BEGIN,
                *(*_ASK, *_ANSWERED, *_CALL),
                *(*_ASK, *_ANSWERED, *_CALL),
                *(*_ASK, *_ANSWERED, *_CALL, *_CALL, *_CALL),
                *_SAY,
                *_END,
            ),
            says=["They have scones."],
            results=[
                ("1. Tea room\nhttps://tea.example/\nScones and cakes.", False),
                (f"# Menu\n\nWe have **scones** and [cakes]({site.url}/cakes).", False),
                ("responded with 404 Not Found.", True),
                ("not a public internet address", True),
                ("is not an http or https URL", True),
            ],
            requests=4,
            asked=["/search?q=tea+{session}&format=json", "/menu?{session}", "/nothing?{session}"],
        ),
        Story(
            name="stopped",
            script=replies([thinking("Hm."), text("Half a word", chunks=1), hang()]),
            types=(
                *(*_BEGIN, *_ASK, ev.USER_INTERRUPT, ev.USER_INTERRUPT),
                *(ev.AGENT_THINKING, ev.AGENT_MESSAGE, *_ANSWERED, *_END),
            ),
            says=["Half a word"],
            interrupted_at="event_delta",
        ),
        Story(
            name="too long",
            script=replies([text("Too lo"), stop("max_tokens")]),
            types=(*_BEGIN, *_SAY, *_END),
            says=["Too lo"],
        ),
    ]


def _broken() -> list[Story]:
    """Returns scenarios with temporary failures: the turn is retried, the session reports why, and the retry works."""
    plain = ("unknown_error", "retrying")
    busy = ("model_overloaded_error", "retrying")
    limited = ("model_rate_limited_error", "retrying")
    return [
        _retried("cut in a text", [text("Ha"), cut()], plain),
        _retried("cut in a thought", [thinking("Hm"), cut()], plain),
        _retried("cut before anything", [cut()], plain),
        _retried("ended without an end", [text("Ha"), cut(quiet=True)], plain),
        _retried("500", [server_error()], busy),
        _retried("500 in a text", [text("Ha"), server_error()], busy),
        _retried("503", [http_error(503)], busy),
        _retried("429", [rate_limited(RETRY_AFTER)], limited, waits=RETRY_AFTER),
        _retried("429 in milliseconds", [http_error(429, headers={"retry-after-ms": "2500"})], limited, waits=2.5),
        Story(
            name="cut in a call",
            script=replies(
                reply(
                    tool("bash", {"command": "echo ran >> log; cat log"}, call_id="call_1"),
                    first_attempts=[[tool("bash", {"command": "echo ran >> log"}, call_id="call_0"), cut()]],
                ),
                [text("Ran.")],
            ),
            types=(*_BEGIN, *_TRY_AGAIN, *_ASK, *_ANSWERED, *_CALL, *_SAY, *_END),
            errors=[plain],
            says=["Ran."],
            results=[("ran", False)],
            requests=3,
        ),
    ]


def _retried(name: str, fault: Sequence[Step], error: tuple[str, str], *, waits: float = 0.0) -> Story:
    return Story(
        name=name,
        script=replies(reply(text("Whole."), first_attempts=[fault])),
        types=_BROKEN,
        errors=[error],
        says=["Whole."],
        requests=2,
        waits=waits,
    )


def _given_up() -> list[Story]:
    """Returns scenarios with permanent failures: the turn fails, at once or after the last retry, and becomes idle."""
    return [
        Story(
            name="always 500",
            script=replies(reply(server_error(), repeat=True)),
            types=(*_BEGIN, *_TRY_AGAIN * MAX_FAILURES, *_FAILED, ev.SESSION_ERROR, *_END),
            errors=[*[("model_overloaded_error", "retrying")] * MAX_FAILURES, ("model_overloaded_error", "terminal")],
            stop_reason="retries_exhausted",
            requests=MAX_FAILURES + 1,
        ),
        *(
            Story(
                name=name,
                script=replies([fault]),
                types=_GIVEN_UP,
                errors=[("model_request_failed_error", "terminal")],
                stop_reason="retries_exhausted",
            )
            for name, fault in (("401", unauthorized()), ("404", http_error(404)), ("400", http_error(400)))
        ),
    ]
