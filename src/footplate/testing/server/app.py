"""The ASGI application of the scripted model server. It implements the model APIs of several providers, and sends
scripted replies.

It uses no web framework, because the server must not be the bottleneck when its clients are measured.
"""

import hmac
import inspect
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from footplate.domain.json import JsonObject
from footplate.testing import reply_steps as s
from footplate.testing.model_scripts import DEFAULT_SCRIPT, Request, Script, ScriptError, echo
from footplate.testing.server import control_api, script_selection
from footplate.testing.server.http_exchange import ClientGone, HttpExchange, Receive, Scope, Send, read_body
from footplate.testing.server.reply_playback import ReplyPlayback
from footplate.testing.server.request_journal import Record, RequestJournal
from footplate.testing.wire import find_format
from footplate.testing.wire.wire_format_interface import WireFormat, new_id

MODEL_NAMES: Final = ("claude-opus-5", "claude-sonnet-5", "claude-haiku-5")


class ModelApp:
    def __init__(self, scripts: Mapping[str, Script], journal: RequestJournal, key: str | None = None) -> None:
        """`key` is required in every request. None accepts any key."""
        self._key = key
        self.scripts: dict[str, Script] = {DEFAULT_SCRIPT: echo, **scripts}
        self.journal = journal
        self._attempts: Counter[tuple[bytes, str, int]] = Counter()
        self._open_exchanges: set[HttpExchange] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            record = _record(scope, await read_body(receive))
        except ClientGone:
            return
        exchange = HttpExchange(receive, send, record)
        if self._key is not None and not _has_key(record, self._key):
            await exchange.send_error(
                s.http_error(401, message="Missing or wrong API key. Send the key of this scripted model as x-api-key.")
            )
            return
        self._open_exchanges.add(exchange)
        try:
            if record.path.startswith(control_api.PREFIX):
                await control_api.handle_control(self, exchange, record)
            else:
                self.journal.add(record)
                await self._route(exchange, record)
        except ClientGone:
            pass
        finally:
            self._open_exchanges.discard(exchange)
            exchange.close()

    def clear(self) -> None:
        """Clears the journal and the retry counters."""
        self.journal.clear()
        self._attempts.clear()

    def abort_all(self) -> None:
        """Ends all open responses, so that shutdown does not wait for one that hangs."""
        for exchange in tuple(self._open_exchanges):
            exchange.abort()

    async def _route(self, exchange: HttpExchange, record: Record) -> None:
        if record.method == "POST" and (wire := find_format(record.path)):
            await self._reply(exchange, record, wire)
        elif record.path == "/v1/messages/count_tokens" and record.method == "POST":
            await exchange.send_json(200, {"input_tokens": max(1, len(record.raw or b"") // 4)})
        elif record.path == "/v1/models" and record.method == "GET":
            data = [_model_object(name) for name in MODEL_NAMES]
            page = {"data": data, "has_more": False, "first_id": MODEL_NAMES[0], "last_id": MODEL_NAMES[-1]}
            await exchange.send_json(200, page)
        elif record.path.startswith("/v1/models/") and record.method == "GET":
            await exchange.send_json(200, _model_object(record.path.removeprefix("/v1/models/")))
        else:
            await exchange.send_error(
                s.http_error(404, message=f"{record.method} {record.path} is not an endpoint of the scripted model")
            )

    async def _reply(self, exchange: HttpExchange, record: Record, wire: WireFormat) -> None:
        body = record.body or {}
        if problem := wire.find_fault(body):
            await exchange.send_error(s.http_error(400, message=problem), wire)
            return
        try:
            steps = await self._steps(self._request(record, body, wire))
        except ScriptError as error:
            await exchange.send_error(s.http_error(400, message=str(error)), wire)
            return
        playback = ReplyPlayback(wire, script_selection.match_tool_names(steps, body), body)
        if wire.is_streamed(record.path, body):
            await exchange.send_stream(playback)
        else:
            await exchange.send_full(playback)

    def _request(self, record: Record, body: JsonObject, wire: WireFormat) -> Request:
        chosen = script_selection.select_script(record.headers, wire.read_conversation(body), self.scripts)
        key = (chosen.conversation, chosen.script, chosen.n)
        attempt = self._attempts[key]
        self._attempts[key] += 1
        record.script, record.n, record.session, record.attempt = chosen.script, chosen.n, chosen.session, attempt
        return Request(
            script=chosen.script,
            n=chosen.n,
            attempt=attempt,
            session=chosen.session,
            prompt=chosen.prompt,
            headers=record.headers,
            body=body,
        )

    async def _steps(self, request: Request) -> Sequence[s.Step]:
        script = self.scripts.get(request.script)
        if script is None:
            raise ScriptError(f"there is no script {request.script!r}; known scripts: {sorted(self.scripts)}")
        try:
            steps = script(request)
            return await steps if inspect.isawaitable(steps) else steps
        except ScriptError:
            raise
        except Exception as error:
            raise ScriptError(f"script {request.script!r} failed: {error!r}") from error


def _record(scope: Scope, raw: bytes) -> Record:
    return Record(
        time=time.time(),
        method=scope["method"],
        path=scope["path"],
        query=scope["query_string"].decode("latin-1"),
        headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]},
        raw=raw,
        request_id=new_id("req"),
    )


def _has_key(record: Record, key: str) -> bool:
    scheme, _, bearer = record.headers.get("authorization", "").partition(" ")
    given = record.headers.get("x-api-key", "") or (bearer.strip() if scheme.lower() == "bearer" else "")
    return hmac.compare_digest(given.encode(), key.encode())


def _model_object(name: str) -> dict[str, str]:
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
    }
