"""Page cursors of lists. A cursor is opaque to clients, bound to one list and one order, and validated before use."""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

import orjson

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json
from footplate.domain.pages import Order

_MAX_SEQ: Final = 2**63 - 1
_MAX_LENGTH: Final = 1024

Place = tuple[datetime, str]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RowCursor:
    """A position in a list ordered by creation time. The page starts after the position or, with `backwards`, ends
    before it.
    """

    order: Order
    place: Place
    backwards: bool = False


def write_row(kind: str, cursor: RowCursor) -> str:
    moment, row_id = cursor.place
    return _write([kind, cursor.order, moment.astimezone(UTC).isoformat(), row_id, cursor.backwards])


def read_row(kind: str, text: str | None, order: Order | None) -> RowCursor | None:
    if text is None:
        return None
    match _read(kind, text):
        case [("asc" | "desc") as direction, str(moment), str(row_id), bool(backwards)] if "\x00" not in row_id:
            _same_order(direction, order)
            return RowCursor(direction, (_moment(moment), row_id), backwards)
    raise _invalid()


def write_number(kind: str, order: Order, number: int) -> str:
    return _write([kind, order, number])


def read_number(kind: str, text: str | None, order: Order | None) -> tuple[Order, int] | None:
    if text is None:
        return None
    match _read(kind, text):
        case [("asc" | "desc") as direction, int(number)] if 0 <= number <= _MAX_SEQ:
            _same_order(direction, order)
            return direction, number
    raise _invalid()


def write_id(kind: str, row_id: str) -> str:
    return _write([kind, row_id])


def read_id(kind: str, text: str | None) -> str | None:
    if text is None:
        return None
    match _read(kind, text):
        case [str(row_id)] if "\x00" not in row_id:
            return row_id
    raise _invalid()


@dataclass(frozen=True, slots=True)
class Slice:
    """The cursors of the next and the previous page."""

    next_page: str | None
    prev_page: str | None


def cut(
    kind: str,
    rows: Sequence[T],
    place: Callable[[T], Place],
    *,
    limit: int,
    order: Order,
    cursor: RowCursor | None,
) -> tuple[Sequence[T], Slice]:
    """Cuts one page out of up to `limit + 1` rows. The additional row shows that there are more in that direction."""
    backwards = cursor is not None and cursor.backwards
    more = len(rows) > limit
    kept = (rows[-limit:] if backwards else rows[:limit]) if more else rows
    if not kept:
        return kept, Slice(None, None)
    after = write_row(kind, RowCursor(order, place(kept[-1])))
    before = write_row(kind, RowCursor(order, place(kept[0]), backwards=True))
    if backwards:
        return kept, Slice(after, before if more else None)
    return kept, Slice(after if more else None, before if cursor is not None else None)


def _write(parts: list[Json]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def _read(kind: str, text: str) -> list[Json]:
    if len(text) > _MAX_LENGTH:
        raise _invalid()
    try:
        parts = orjson.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError) as error:
        raise _invalid() from error
    if not isinstance(parts, list) or not parts or parts[0] != kind:
        raise _invalid()
    return parts[1:]


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise _invalid() from error


def _same_order(found: str, asked: Order | None) -> None:
    if asked is not None and asked != found:
        raise InvalidRequest(
            f"page: the cursor belongs to a list with order {found!r}",
            field="page",
            help_text="Use the same order as for the first page, or start again without a cursor.",
        )


def _invalid() -> InvalidRequest:
    return InvalidRequest(
        "page: is not a valid cursor of this list",
        field="page",
        help_text="Pass the `next_page` of the previous page unchanged, or omit `page`.",
    )
