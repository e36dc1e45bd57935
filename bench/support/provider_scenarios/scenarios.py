"""Scenarios for every wire format: the scripted provider's replies and failures, and the events a client must receive.

The expected events are written out, so that formats that are all wrong in the same way do not pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bench.support.provider_scenarios.web_site import WebSite
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

_TURN_START: Final = (ev.USER_MESSAGE, ev.USER_MESSAGE, ev.STATUS_RUNNING)
_REQUEST_START: Final = (ev.MODEL_REQUEST_START,)
_REQUEST_END: Final = (ev.MODEL_REQUEST_END,)
_FAILED_REQUEST: Final = (ev.MODEL_REQUEST_START, ev.MODEL_REQUEST_END)
_CALL: Final = (ev.AGENT_TOOL_USE, ev.AGENT_TOOL_RESULT)
_RETRY: Final = (*_FAILED_REQUEST, ev.SESSION_ERROR, ev.STATUS_RESCHEDULED, ev.STATUS_RUNNING)
_MESSAGE: Final = (*_REQUEST_START, ev.AGENT_MESSAGE, *_REQUEST_END)
_TURN_END: Final = (ev.STATUS_IDLE,)
_RETRIED_TURN: Final = (*_TURN_START, *_RETRY, *_MESSAGE, *_TURN_END)
_FAILED_TURN: Final = (*_TURN_START, *_FAILED_REQUEST, ev.SESSION_ERROR, *_TURN_END)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str
    script: Replies
    types: Sequence[str]
    """Types of all events from the message to idle, in order."""
    errors: Sequence[tuple[str, str]] = ()
    """The type and retry status of each `session.error`."""
    stop_reason: str = "end_turn"
    messages: Sequence[str] = ()
    """The agent's messages."""
    results: Sequence[tuple[str, bool]] = ()
    """For each tool result: a part of its text, and whether the call failed."""
    requests: int = 1
    min_wait: float = 0.0
    """Minimum seconds between the first request and the second."""
    interrupted_at: str | None = None
    """The event after which the user interrupts."""
    site_requests: Sequence[str] = field(default_factory=tuple)
    """Paths that the web site must have received exactly once."""

    @property
    def script_name(self) -> str:
        return f"story-{self.name.replace(' ', '-')}"


def build_scenarios(site: WebSite) -> list[Scenario]:
    return [*_successful(site), *_temporary_failures(), *_permanent_failures()]


def _successful(site: WebSite) -> list[Scenario]:
    return [
        Scenario(
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
                *_TURN_START,
                *(*_REQUEST_START, ev.AGENT_THINKING, ev.AGENT_MESSAGE, *_REQUEST_END, *_CALL, *_CALL),
                *(*_REQUEST_START, *_REQUEST_END, *_CALL),
                *(*_REQUEST_START, ev.AGENT_THINKING, ev.AGENT_MESSAGE, *_REQUEST_END),
                *_TURN_END,
            ),
            messages=["Looking.", "There are scones."],
            results=[("scones", False), ("scones", False), ("The file missing", True)],
            requests=3,
        ),
        Scenario(
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
                *_TURN_START,
                *(*_REQUEST_START, *_REQUEST_END, *_CALL),
                *(*_REQUEST_START, *_REQUEST_END, *_CALL),
                *(*_REQUEST_START, *_REQUEST_END, *_CALL, *_CALL, *_CALL),
                *_MESSAGE,
                *_TURN_END,
            ),
            messages=["They have scones."],
            results=[
                ("1. Tea room\nhttps://tea.example/\nScones and cakes.", False),
                (f"# Menu\n\nWe have **scones** and [cakes]({site.url}/cakes).", False),
                ("responded with 404 Not Found.", True),
                ("not a public internet address", True),
                ("is not an http or https URL", True),
            ],
            requests=4,
            site_requests=["/search?q=tea+{session}&format=json", "/menu?{session}", "/nothing?{session}"],
        ),
        Scenario(
            name="stopped",
            script=replies([thinking("Hm."), text("Half a word", chunks=1), hang()]),
            types=(
                *(*_TURN_START, *_REQUEST_START, ev.USER_INTERRUPT, ev.USER_INTERRUPT),
                *(ev.AGENT_THINKING, ev.AGENT_MESSAGE, *_REQUEST_END, *_TURN_END),
            ),
            messages=["Half a word"],
            interrupted_at="event_delta",
        ),
        Scenario(
            name="too long",
            script=replies([text("Too lo"), stop("max_tokens")]),
            types=(*_TURN_START, *_MESSAGE, *_TURN_END),
            messages=["Too lo"],
        ),
    ]


def _temporary_failures() -> list[Scenario]:
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
        _retried("429", [rate_limited(RETRY_AFTER)], limited, min_wait=RETRY_AFTER),
        _retried("429 in milliseconds", [http_error(429, headers={"retry-after-ms": "2500"})], limited, min_wait=2.5),
        Scenario(
            name="cut in a call",
            script=replies(
                reply(
                    tool("bash", {"command": "echo ran >> log; cat log"}, call_id="call_1"),
                    first_attempts=[[tool("bash", {"command": "echo ran >> log"}, call_id="call_0"), cut()]],
                ),
                [text("Ran.")],
            ),
            types=(*_TURN_START, *_RETRY, *_REQUEST_START, *_REQUEST_END, *_CALL, *_MESSAGE, *_TURN_END),
            errors=[plain],
            messages=["Ran."],
            results=[("ran", False)],
            requests=3,
        ),
    ]


def _retried(name: str, fault: Sequence[Step], error: tuple[str, str], *, min_wait: float = 0.0) -> Scenario:
    return Scenario(
        name=name,
        script=replies(reply(text("Whole."), first_attempts=[fault])),
        types=_RETRIED_TURN,
        errors=[error],
        messages=["Whole."],
        requests=2,
        min_wait=min_wait,
    )


def _permanent_failures() -> list[Scenario]:
    """Returns scenarios with permanent failures: the turn fails, at once or after the last retry, and becomes idle."""
    return [
        Scenario(
            name="always 500",
            script=replies(reply(server_error(), repeat=True)),
            types=(*_TURN_START, *_RETRY * MAX_FAILURES, *_FAILED_REQUEST, ev.SESSION_ERROR, *_TURN_END),
            errors=[*[("model_overloaded_error", "retrying")] * MAX_FAILURES, ("model_overloaded_error", "terminal")],
            stop_reason="retries_exhausted",
            requests=MAX_FAILURES + 1,
        ),
        *(
            Scenario(
                name=name,
                script=replies([fault]),
                types=_FAILED_TURN,
                errors=[("model_request_failed_error", "terminal")],
                stop_reason="retries_exhausted",
            )
            for name, fault in (("401", unauthorized()), ("404", http_error(404)), ("400", http_error(400)))
        ),
    ]
