"""Refuses migrations that would break running processes.

A migration that removes or changes what older code uses declares `needs_code`: the oldest code that can run with it, as
the newest revision that this code knows. It is applied only when no older process runs, and it is recorded, so that no
older process starts afterwards (`schema_revisions.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from alembic.script import Script
from alembic.script.revision import Revision
from sqlalchemy import Connection, text

from footplate.domain.errors import Conflict

LOST_AFTER_SECONDS: Final = 60
"""A process that was not seen for this long was killed. If that is not known, it counts as running."""
_SHOWN: Final = 5
# Read as JSON, because an older schema may lack columns.
_WORKERS: Final = text("""
    select 'worker' as role, w.id, w.host, to_jsonb(w) ->> 'version' as version,
           to_jsonb(w) ->> 'schema_revision' as schema_revision
    from workers w
    where coalesce(
        (to_jsonb(w) ->> 'last_seen_at')::timestamptz > clock_timestamp() - :seconds * interval '1 second', true)
    order by w.id
""")
_API_PROCESSES: Final = text("""
    select 'API' as role, a.id, a.host, a.version, a.schema_revision from api_processes a
    where a.last_seen_at > clock_timestamp() - :seconds * interval '1 second' order by a.id
""")
_UNNAMED_CONNECTIONS: Final = text("""
    select count(*) from pg_stat_activity
    where datname = current_database() and usename = current_user and backend_type = 'client backend'
      and pid <> pg_backend_pid() and application_name = ''
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningProcess:
    role: str
    id: str
    host: str
    version: str | None
    schema_revision: str | None
    """The newest revision that its code knows. None: the code is older than the record of it."""

    def is_older_than(self, revision: str) -> bool:
        return self.schema_revision is None or self.schema_revision < revision

    def __str__(self) -> str:
        return f"{self.role} {self.id} on {self.host} (version {self.version or 'unknown'})"


def find_needed_code(pending: Iterable[Revision]) -> str | None:
    """Returns the newest `needs_code` of these migrations."""
    declared = [
        code for each in pending if isinstance(each, Script) and (code := getattr(each.module, "needs_code", None))
    ]
    return max(declared, default=None)


def refuse_while_older_code_runs(connection: Connection, needed: str) -> None:
    """Raises `Conflict` with the processes that the migration would break."""
    older = [str(each) for each in _find_processes(connection) if each.is_older_than(needed)]
    if unnamed := connection.execute(_UNNAMED_CONNECTIONS).scalar_one():
        older.append(f"{unnamed} connections of an unknown program, as of a Footplate before 0.2.0")
    if not older:
        return
    shown = ", ".join(older[:_SHOWN]) + (f" and {len(older) - _SHOWN} more" if len(older) > _SHOWN else "")
    raise Conflict(
        f"Nothing was migrated, because the new schema would break processes that run older code: {shown}.",
        help_text="Upgrade or stop them, then run `footplate migrate` again. With --force, it migrates anyway.",
    )


def _find_processes(connection: Connection) -> Sequence[RunningProcess]:
    parameters = {"seconds": LOST_AFTER_SECONDS}
    has_api_processes = connection.execute(text("select to_regclass('api_processes') is not null")).scalar_one()
    queries = [_WORKERS, *([_API_PROCESSES] if has_api_processes else [])]
    return [
        RunningProcess(**cast("Mapping[str, Any]", row))
        for query in queries
        for row in connection.execute(query, parameters).mappings()
    ]
