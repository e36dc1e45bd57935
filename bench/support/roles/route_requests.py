"""Calls every route of the OpenAPI document with a key, and compares the response with the published table."""

import itertools
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
import orjson
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from bench.prove.figure import require
from bench.support.nested_references import SKIPPED_STEP
from bench.support.openapi import OpenApiDocument, Operation
from bench.support.organisation_isolation import (
    COMMENT,
    QUESTION_TEXT,
    Ids,
    build_job,
    new_push_subscription,
    new_webhook_url,
)
from bench.support.roles.issued_keys import IssuedKey
from bench.support.roles.published_table import PublishedTable
from footplate.domain.sessions import events
from footplate.stack.orphan_processes import wait_until

_SOCKET_PATHS: Final = ("/v1/sessions/{session_id}/ws", "/v1/sessions/{session_id}/terminal/ws")
_OPEN_PATH: Final = "/openapi.json"
_REFUSAL: Final = {
    httpx2.codes.UNAUTHORIZED: "API key",
    httpx2.codes.FORBIDDEN: "needs",
}
"""What the message of a refusal contains."""
_HIDDEN_WITH_SESSION: Final = frozenset(
    {"session_id", "approval_id", "question_id", "file_id", "turn_id", "step_id", "batch_id", "endpoint_id"}
    | {"deployment_id", "trigger_id", "item_id", "comment_id"}
)
_SIGNED: Final = "POST /v1/triggers/{trigger_id}"
"""Needs a signature instead of a key, and these requests have none."""
_OPENS_TERMINAL: Final = "POST /v1/sessions/{session_id}/terminal"
_NEEDS_IDLE_SESSION: Final = ("POST /v1/sessions/{session_id}/archive", "DELETE /v1/sessions/{session_id}")
_SESSION_CREATION: Final = ("/v1/sessions", "/v1/sessions/import")
_SIGN_IN_PATHS: Final = ("/v1/sign_in", "/v1/browser_sessions", "/v1/device_authorizations", "/v1/me/")
"""Routes that sign in and out: they need a browser, or end the key that this claim uses. dash-6 attacks them."""
_INCOMPLETE: Final = ("/merge", "/push", "/bundle", "/transcript", "/import", "/move", "/result", "/next", "/retry")
"""Routes that need more than the session has: a project, Claude Code, or a step in the right state. They are served
with an error of their own."""


@dataclass(frozen=True, slots=True)
class Case:
    operation: Operation
    condition: str | None = None
    """The published condition that the request meets."""

    def __str__(self) -> str:
        return f"{self.operation}{f' with {self.condition}' if self.condition else ''}"

    @property
    def rank(self) -> int:
        """Requests that read come first, and those that end an object last."""
        operation = self.operation
        if operation.method == "GET":
            return 0
        if operation.method == "DELETE" and operation.path.count("/") == 3 and operation.path.endswith("}"):
            return 4
        if operation.path.endswith(("/archive", "/end", "/revoke")):
            return 3
        return 2 if operation.path.endswith("/comments/send") else 1  # a comment that was sent cannot be changed


@dataclass(slots=True)
class RouteFindings:
    requests: int = 0
    served: int = 0
    faults: list[str] = field(default_factory=list)


def _is_sign_in(operation: Operation) -> bool:
    return operation.path.startswith(_SIGN_IN_PATHS)


def list_cases(document: OpenApiDocument, table: PublishedTable) -> list[Case]:
    """Returns a case for each route, and one for each published condition of it, in the order to call them."""
    cases = [
        Case(operation, condition)
        for operation in document.operations()
        if not _is_sign_in(operation)
        for condition in (None, *table.conditions(operation.method, operation.path))
    ]
    return sorted(cases, key=lambda case: case.rank)


@dataclass(slots=True)
class RouteCaller:
    document: OpenApiDocument
    table: PublishedTable
    base_urls: Sequence[str]
    findings: RouteFindings = field(default_factory=RouteFindings)

    async def call_all(self, key: IssuedKey, cases: Sequence[Case], shared: Ids, own: Ids | None) -> None:
        """Calls every route. A request that should be refused names the shared objects, which must not change; any
        other one names `own`, which may change.
        """
        clients = [_client(url, key.secret) for url in self.base_urls]
        replicas = itertools.cycle(clients)
        try:
            for case in cases:
                required = self.table.route_permissions(case.operation.method, case.operation.path, case.condition)
                refusal = key.expected_refusal(required)
                if key.is_restricted and case.operation.needs_key:
                    await self._call_restricted(key, case, next(replicas), shared)
                elif key.is_foreign and case.operation.needs_key:
                    await self._call_foreign(key, case, next(replicas), shared)
                elif refusal is not None:
                    for http in clients:
                        await self._call(key, case, http, shared, refusal)
                else:
                    served, operation = own or shared, str(case.operation)
                    if operation in _NEEDS_IDLE_SESSION:
                        await _interrupt(next(replicas), served["session_id"])
                    await self._call(key, case, next(replicas), served, None)
                    if operation == _OPENS_TERMINAL:
                        await _interrupt(next(replicas), served["session_id"])
        finally:
            for http in clients:
                await http.aclose()
        for url, path in itertools.product(self.base_urls, _SOCKET_PATHS):
            await self._open_socket(key, url, path, shared)

    async def _call(self, key: IssuedKey, case: Case, http: httpx2.AsyncClient, ids: Ids, refusal: int | None) -> None:
        status, text = await self._send(case, http, ids)
        if refusal is None:
            self.findings.served += 1
            fault = not _is_served(case.operation, status)
        else:
            fault = status != refusal or _REFUSAL[httpx2.codes(refusal)] not in text
        if fault:
            wanted = "to be served" if refusal is None else str(refusal)
            self.findings.faults.append(f"{key.name}: {case} returned {status} instead of {wanted}: {text[:300]}")

    async def _call_foreign(self, key: IssuedKey, case: Case, http: httpx2.AsyncClient, shared: Ids) -> None:
        """A key of another organisation finds no object by its id, and sees none in a list."""
        status, text = await self._send(case, http, shared)
        by_id = bool(case.operation.path_parameters)
        if (by_id and status != httpx2.codes.NOT_FOUND) or status in _REFUSAL:
            self.findings.faults.append(f"{key.name}: {case} returned {status}: {text[:300]}")
        elif case.operation.method == "GET" and not by_id and any(each in text for each in shared.values()):
            self.findings.faults.append(f"{key.name}: {case} lists objects of another organisation")

    async def _call_restricted(self, key: IssuedKey, case: Case, http: httpx2.AsyncClient, shared: Ids) -> None:
        """A key that is restricted to a project finds only what belongs to it, on the published routes."""
        status, text = await self._send(case, http, shared)
        operation = case.operation
        hidden = {shared[name] for name in _HIDDEN_WITH_SESSION if name in shared}
        if not self.table.serves_restricted_keys(operation.method, operation.path):
            holds = status == httpx2.codes.FORBIDDEN and "restricted to projects" in text
        elif _HIDDEN_WITH_SESSION & {*operation.path_parameters}:
            holds = status == httpx2.codes.NOT_FOUND
        elif operation.path in _SESSION_CREATION and operation.method == "POST":
            holds = status in {httpx2.codes.FORBIDDEN, httpx2.codes.BAD_REQUEST}  # it names no project
        else:
            holds = status < httpx2.codes.MULTIPLE_CHOICES and not any(each in text for each in hidden)
        if not holds:
            self.findings.faults.append(f"{key.name}: {case} returned {status}: {text[:300]}")

    async def _open_socket(self, key: IssuedKey, url: str, pattern: str, ids: Ids) -> None:
        path = pattern.format_map(ids)
        refusal = key.expected_refusal(self.table.route_permissions("GET", pattern))
        is_hidden = key.is_foreign or key.is_restricted
        expected = httpx2.codes.NOT_FOUND if is_hidden else refusal or httpx2.codes.SWITCHING_PROTOCOLS
        headers = {"authorization": f"Bearer {key.secret}"}
        status: int = httpx2.codes.SWITCHING_PROTOCOLS
        try:
            async with connect(f"{url.replace('http', 'ws', 1)}{path}", additional_headers=headers):
                pass
        except InvalidStatus as error:
            status = error.response.status_code
        self.findings.requests += 1
        if status != expected:
            self.findings.faults.append(f"{key.name}: the WebSocket returned {status} instead of {expected}")

    async def call_without_key(self, cases: Sequence[Case], shared: Ids) -> None:
        """Without a key, only the routes that need none are served."""
        async with _client(self.base_urls[0], None) as http:
            for case in cases:
                required = self.table.route_permissions(case.operation.method, case.operation.path, case.condition)
                await self._call(_NO_KEY, case, http, shared, _NO_KEY.expected_refusal(required))
            if not (await http.get(_OPEN_PATH)).is_success or self.table.route_permissions("GET", _OPEN_PATH):
                self.findings.faults.append(f"{_OPEN_PATH} needs a key")

    async def _send(self, case: Case, http: httpx2.AsyncClient, ids: Ids) -> tuple[int, str]:
        self.findings.requests += 1
        operation = case.operation
        url, options = operation.url(_ids_of(case, ids)), self._content(case, ids)
        async with http.stream(operation.method, url, **options) as response:
            streamed = response.headers.get("content-type", "").startswith("text/event-stream")
            return response.status_code, "" if streamed else (await response.aread()).decode(errors="replace")

    def _content(self, case: Case, ids: Ids) -> dict[str, Any]:
        operation = case.operation
        if operation.path == "/v1/files" and operation.method == "POST":
            return {"files": {"file": ("a.txt", b"x")}}
        if operation.path == "/v1/sessions/import":
            first = {"agent": ids["agent_id"], "environment_id": ids["environment_id"]}
            return {"content": orjson.dumps(first)}
        if operation.body is None:
            return {}
        return {"json": {**self._body(operation, ids), **_fields(case, ids)}}

    def _body(self, operation: Operation, ids: Ids) -> dict[str, Any]:
        given = {
            **ids,
            "name": f"n-{secrets.token_hex(6)}",
            "agent": ids["agent_id"],
            "project_ids": [ids["project_id"]],
            "version": 2,
        }
        assert operation.body is not None
        return dict(self.document.minimal_value(operation.body, given))


_NO_KEY: Final = IssuedKey("no key", "", None)


def _fields(case: Case, ids: Ids) -> Mapping[str, Any]:
    """Returns the fields with which a request is valid, where the required ones are not enough."""
    decision = {"type": events.USER_TOOL_CONFIRMATION, "tool_use_id": ids["approval_id"], "result": "allow"}
    location = {"url": f"https://git.example.com/{secrets.token_hex(6)}"}
    fields: Mapping[str, Mapping[str, Any]] = {
        "POST /v1/sessions/{session_id}/events": {"events": [{"type": events.USER_INTERRUPT}]},
        "POST /v1/sessions/{session_id}/events with user.tool_confirmation": {"events": [decision]},
        "POST /v1/questions/{question_id}/answer": {"answers": {QUESTION_TEXT: "Red"}},
        "POST /v1/sessions/{session_id}/comments": COMMENT,
        "POST /v1/policies/explain": {"tool": "bash", "input": {"command": "ls"}, "agent_id": None, "project_id": None},
        "POST /v1/limits": {"name": "sessions", "value": 1_000_000},
        "POST /v1/projects": location,
        "POST /v1/projects with permissions": {**location, "permissions": _RULES},
        "POST /v1/projects/{project_id} with permissions": {"permissions": _RULES},
        "POST /v1/sessions/{session_id}/steps": {"steps": [SKIPPED_STEP]},
        "POST /v1/sessions/{session_id}/steps/{step_id}/move": {"before": None},
        "POST /v1/session_batches": {"requests": [build_job(ids)]},
        "POST /v1/webhook_endpoints": {"url": new_webhook_url()},
        "POST /v1/webhook_endpoints with session_id": {"url": new_webhook_url(), "session_id": ids["session_id"]},
        "POST /v1/push_subscriptions": new_push_subscription(),
        "POST /v1/deployments": {"steps": [SKIPPED_STEP]},
        "POST /v1/triggers": {
            "steps": [SKIPPED_STEP],
            "agent": ids["agent_id"],
            "environment_id": ids["environment_id"],
        },
        "POST /v1/sessions/{session_id}/resources": {"type": "file", "file_id": ids["file_id"]},
    }
    return fields.get(str(case), {})


_RULES: Final = {"deny": ["Bash(shutdown *)"]}


def _ids_of(case: Case, ids: Ids) -> Ids:
    if case.condition == events.USER_TOOL_CONFIRMATION:
        return {**ids, "session_id": ids["approval_session_id"]}
    return ids


def _is_served(operation: Operation, status: int) -> bool:
    if str(operation) == _SIGNED:
        return status == httpx2.codes.UNAUTHORIZED
    if status < httpx2.codes.MULTIPLE_CHOICES:
        return True
    if operation.path.endswith("/{recording_id}"):  # the session has none
        return status == httpx2.codes.NOT_FOUND
    return status in {httpx2.codes.BAD_REQUEST, httpx2.codes.CONFLICT} and operation.path.endswith(_INCOMPLETE)


async def _interrupt(http: httpx2.AsyncClient, session_id: str) -> None:
    """Interrupts the session, a terminal included, until no turn runs."""
    session = f"/v1/sessions/{session_id}"

    async def is_idle() -> bool:
        await http.post(f"{session}/events", json={"events": [{"type": events.USER_INTERRUPT}]})
        found = (await http.get(session)).json()
        return found.get("status") not in {"running", "rescheduling"}

    require(holds=await wait_until(is_idle, 60), otherwise=f"the session {session_id} does not become idle")


def _client(base_url: str, secret: str | None) -> httpx2.AsyncClient:
    headers = {} if secret is None else {"authorization": f"Bearer {secret}"}
    return httpx2.AsyncClient(base_url=base_url, headers=headers, trust_env=False, timeout=60)
