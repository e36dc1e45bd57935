"""The PostgreSQL connection pool, the named SQL queries, and the conversion of driver errors to Footplate's errors."""

import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import asyncpg
import orjson
import stamina

from footplate.domain.errors import Unavailable
from footplate.domain.organisations.fair_limiter import OrganisationLimiter

if TYPE_CHECKING:
    Connection = asyncpg.pool.PoolConnectionProxy[asyncpg.Record]
    _BaseConnection = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.pool.PoolConnectionProxy
    _BaseConnection = asyncpg.Connection
T = TypeVar("T")
PlanCacheMode = Literal["auto", "force_generic_plan"]
Pooler = Literal["none", "transaction"]
"""`transaction`: each transaction may use another connection to the server, as behind pgbouncer."""

_CONNECTION_ERRORS: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the connection broke in the middle of a response
)
_ACCESS_ERRORS: Final = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)
_CONNECT_SECONDS: Final = 10.0
APPLICATION_NAME: Final = "footplate"
"""The name of all connections in `pg_stat_activity`. Versions before 0.2.0 had none."""
_NUMBER: Final = re.compile(r"\$(\d+)")
_PARAMETER: Final = re.compile(r"--[^\n]*|'(?:[^']|'')*'|(?<![\w:]):(?P<name>[a-z]\w*)")
"""A named parameter, or a comment or a literal, in which a colon means nothing. `::` is a cast."""
_NAME: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def load_queries() -> dict[str, str]:
    """Loads the statements of `store/sql/*.sql` by their `-- name:` lines. Raises ValueError for a duplicate name."""
    queries: dict[str, str] = {}
    for file in files("footplate.store").joinpath("sql").iterdir():
        if not file.name.endswith(".sql"):
            continue
        _, *parts = _NAME.split(file.read_text())
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            if name in queries:
                raise ValueError(f"The query {name} is defined twice.")
            queries[name] = text.strip()
    return queries


def number_parameters(text: str) -> tuple[str, tuple[str, ...]]:
    """Replaces the parameters `:name` of a statement by numbers. Returns the text, and the names in their order."""
    names: dict[str, int] = {}

    def replace(match: re.Match[str]) -> str:
        name = match["name"]
        return match[0] if name is None else f"${names.setdefault(name, len(names) + 1)}"

    return _PARAMETER.sub(replace, text), tuple(names)


def count_parameters(text: str) -> int:
    """Returns how many numbered parameters a statement has."""
    return max(map(int, _NUMBER.findall(text)), default=0)


_NUMBERED: Final = {name: number_parameters(text) for name, text in load_queries().items()}
SQL: Final = {name: text for name, (text, _) in _NUMBERED.items()}
"""The statements by name, with numbers for their parameters."""
PARAMETERS: Final = {name: names for name, (_, names) in _NUMBERED.items() if names}
"""The names of the parameters, of each statement that names them. A statement with more than five does."""


def bind(query: str, /, **values: object) -> tuple[Any, ...]:
    """Returns the text of a statement and the values of its named parameters, as arguments for a connection.

    Raises TypeError for a name that the statement does not have, and for one that is missing.
    """
    names = PARAMETERS.get(query, ())
    if len(values) == len(names):
        with suppress(KeyError):
            return (SQL[query], *[values[name] for name in names])
    wrong = ", ".join(sorted(values.keys() ^ set(names)))
    raise TypeError(f"The statement {query} and its call differ in these parameters: {wrong}.")


def _bind_call(query: str, args: tuple[object, ...], values: dict[str, object]) -> tuple[Any, ...]:
    if args and (values or query in PARAMETERS):
        raise TypeError(f"The statement {query} has either positional or named parameters, not both.")
    return (SQL[query], *args) if args else bind(query, **values)


@contextmanager
def translate_driver_errors() -> Iterator[None]:
    """Raises `Unavailable` for every driver error that means that the database does not respond."""
    try:
        yield
    except _CONNECTION_ERRORS as error:
        raise Unavailable(
            f"The database does not respond ({type(error).__name__}).",
            retry_after=1,
            help_text="Try again in a moment. Run `footplate doctor` to check whether PostgreSQL is reachable.",
        ) from error
    except asyncpg.DeadlockDetectedError as error:
        raise Unavailable(
            "The database rolled this change back because it deadlocked with another change.",
            retry_after=1,
            help_text="Send the request again.",
        ) from error


@contextmanager
def _translate_open_errors(dsn: str) -> Iterator[None]:
    """Translates connection errors at process start. The message names the database; `translate_driver_errors` must not
    do that, because its messages also go to clients.
    """
    try:
        yield
    except (*_CONNECTION_ERRORS, *_ACCESS_ERRORS, ValueError) as error:
        # The text of a plain ValueError may quote the password, for example as an invalid port.
        reason = "the URL is not valid" if type(error) is ValueError else str(error).rstrip(".")
        raise Unavailable(
            f"Cannot connect to the database at {address_without_secrets(dsn)}: {reason or type(error).__name__}.",
            help_text=_connection_advice(error),
        ) from error


def _connection_advice(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return "Correct `sslrootcert` or the host in FOOTPLATE_DATABASE_URL, or the certificate of the server."
    if isinstance(error, asyncpg.ProtocolViolationError) and "startup parameter" in str(error):
        return "A pooler in transaction mode needs FOOTPLATE_DATABASE_POOLER=transaction."
    return (
        "Start the database or correct FOOTPLATE_DATABASE_URL. `footplate dev` starts its own database; "
        "`footplate doctor` checks every service."
    )


async def connect(dsn: str) -> _BaseConnection:
    """Opens a single connection, for a process that needs no pool. It works behind any pooler."""
    with _translate_open_errors(dsn):
        return await asyncpg.connect(
            dsn,
            timeout=_CONNECT_SECONDS,
            statement_cache_size=0,
            server_settings={"application_name": APPLICATION_NAME},
        )


def address_without_secrets(dsn: str) -> str:
    """Returns host, port and database name: the text after the last @, as a password may contain an unescaped @."""
    address = dsn.rpartition("@")[2] if "@" in dsn else dsn.partition("//")[2]
    return address.partition("?")[0]


class Database:
    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", *, retry_seconds: float, keeps_plans: bool = True) -> None:
        self._pool = pool
        self._retry_seconds = retry_seconds
        self._keeps_plans = keeps_plans
        size = pool.get_max_size()
        self.change_limiter = OrganisationLimiter(size, max_per_organisation=size * 3 // 4)
        """Limits the connections that one organisation's changes may use, so that some remain for the others."""

    @classmethod
    async def open(
        cls,
        dsn: str,
        *,
        size: int,
        retry_seconds: float = 5.0,
        plan_cache_mode: PlanCacheMode = "auto",
        pooler: Pooler = "none",
    ) -> "Database":
        """Opens the pool. `retry_seconds`: how long a caller waits for a database that is being restarted.

        `plan_cache_mode="force_generic_plan"` is for a caller that always selects rows by session: one cached plan then
        serves all calls. By default the server plans such a statement anew each time, over every partition, at twice
        the cost of running it. A pooler in transaction mode keeps no plans.
        """
        options: dict[str, Any] = (
            # The set of statements is fixed. A timer per statement would keep the turn that first ran it in memory.
            {"max_cached_statement_lifetime": 0} if pooler == "none" else {"statement_cache_size": 0}
        )
        session_settings = {"application_name": APPLICATION_NAME}
        if pooler == "none":
            session_settings["plan_cache_mode"] = plan_cache_mode
        with _translate_open_errors(dsn):
            pool = await asyncpg.create_pool(
                dsn,
                min_size=min(2, size),
                max_size=size,
                init=_set_codecs,
                connection_class=_PooledConnection,
                command_timeout=60,
                timeout=_CONNECT_SECONDS,
                server_settings=session_settings,
                **options,
            )
        return cls(pool, retry_seconds=retry_seconds, keeps_plans=pooler == "none")

    async def close(self) -> None:
        await self._pool.close()

    async def plan_statements(self, queries: Sequence[str]) -> None:
        """Plans these statements on the idle connections in advance, so that the first turn does not wait: planning for
        a partitioned table takes many times as long as running. They run with null parameters, which match no row.
        """
        if not self._keeps_plans:
            return
        async with AsyncExitStack() as exits:
            for _ in range(self._pool.get_idle_size()):
                connection = await exits.enter_async_context(self.connection())
                for query in queries:
                    await connection.fetch(SQL[query], *[None] * count_parameters(SQL[query]))

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        with translate_driver_errors():
            connection = await self._acquire()
            try:
                yield connection
            finally:
                await self._pool.release(connection)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def fetch(self, query: str, /, *args: object, **values: object) -> list[asyncpg.Record]:
        bound = _bind_call(query, args, values)
        return await self._run_with_retries(lambda connection: connection.fetch(*bound))

    async def fetchrow(self, query: str, /, *args: object, **values: object) -> asyncpg.Record | None:
        bound = _bind_call(query, args, values)
        return await self._run_with_retries(lambda connection: connection.fetchrow(*bound))

    async def _run_with_retries(self, call: Callable[[Connection], Awaitable[T]]) -> T:
        """Runs `call` with retries. Only for reads and for statements that may safely run twice."""

        async def attempt() -> T:
            async with self.connection() as connection:
                return await call(connection)

        return await call_with_retries(attempt, on=(Unavailable,), seconds=self._retry_seconds, wait_max=0.5)

    async def _acquire(self) -> Connection:
        """Acquires a connection. Retries, because connections that were idle during a database restart are dead."""
        return await call_with_retries(
            self._pool.acquire, on=_CONNECTION_ERRORS, seconds=self._retry_seconds, wait_max=0.5
        )


async def call_with_retries(
    call: Callable[[], Awaitable[T]],
    *,
    on: tuple[type[Exception], ...],
    seconds: float,
    wait_max: float,
) -> T:
    """Retries `call` until it succeeds or the time is up. The first attempt runs outside of the retry loop, because
    setting up the loop costs as much as a query.
    """
    with suppress(*on):
        return await call()
    async for attempt in stamina.retry_context(
        on=on, timeout=seconds, attempts=None, wait_initial=0.05, wait_max=wait_max
    ):
        with attempt:
            return await call()
    raise AssertionError  # unreachable: the loop returns or raises


class _PooledConnection(_BaseConnection):
    def get_reset_query(self) -> str:
        """Returns no query: Footplate leaves no state on a connection, so a release needs no round trip."""
        return ""


async def _set_codecs(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    for name in ("json", "jsonb"):
        await connection.set_type_codec(
            name, encoder=_encode_json, decoder=orjson.loads, schema="pg_catalog", format="text"
        )


def _encode_json(value: Any) -> str:
    return orjson.dumps(value).decode()
