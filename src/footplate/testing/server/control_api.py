"""HTTP endpoints with which a test in another process controls the scripted model server.

`GET` and `DELETE /_control/requests` read and clear the journal of requests, and `PUT /_control/scripts/NAME` installs
a script. `GET` accepts `?script=NAME&bodies=false`.
"""

from collections.abc import MutableMapping
from typing import Final, Protocol
from urllib.parse import parse_qs

from footplate.testing import reply_steps as s
from footplate.testing.model_scripts import Script, ScriptError
from footplate.testing.server.http_exchange import HttpExchange
from footplate.testing.server.request_journal import Record, RequestJournal

PREFIX: Final = "/_control/"
_REQUESTS: Final = PREFIX + "requests"
_SCRIPTS: Final = PREFIX + "scripts/"


class ControlledApp(Protocol):
    @property
    def scripts(self) -> MutableMapping[str, Script]: ...

    @property
    def journal(self) -> RequestJournal: ...

    def clear(self) -> None: ...


async def handle_control(app: ControlledApp, exchange: HttpExchange, record: Record) -> None:
    if record.path == _REQUESTS and record.method == "GET":
        query = {name: values[-1] for name, values in parse_qs(record.query).items()}
        bodies = query.get("bodies") != "false"
        lines = app.journal.list_records(script=query.get("script"))
        await exchange.send_json(200, {"data": [line.to_json(bodies=bodies) for line in lines]})
    elif record.path == _REQUESTS and record.method == "DELETE":
        app.clear()
        await exchange.send_json(200, {})
    elif record.path.startswith(_SCRIPTS) and record.method == "PUT":
        await _install(app, exchange, record)
    else:
        await exchange.send_error(s.http_error(404, message=f"unknown control endpoint: {record.method} {record.path}"))


async def _install(app: ControlledApp, exchange: HttpExchange, record: Record) -> None:
    from footplate.testing import script_json

    try:
        name = script_json.check_name(record.path.removeprefix(_SCRIPTS))
        app.scripts[name] = script_json.loads(record.raw or b"")
    except ScriptError as error:
        await exchange.send_error(s.http_error(400, message=str(error)))
        return
    await exchange.send_json(200, {})
