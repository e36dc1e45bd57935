"""Encodes and decodes the page cursors of lists, and responds with a page. A cursor is opaque to clients, bound to one
list and one order, and validated before use.
"""

import base64
import binascii
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Protocol, TypeVar

import orjson
from starlette.responses import Response

from footplate.api.wire.json_responses import list_response
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json
from footplate.domain.pagination import Order, Page

_MAX_SEQ: Final = 2**63 - 1
_MAX_LENGTH: Final = 1024

Position = tuple[datetime, str]
T = TypeVar("T")


class ListedRow(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def created_at(self) -> datetime: ...


R = TypeVar("R", bound=ListedRow)


@dataclass(frozen=True, slots=True)
class RowCursor:
    """A position in a list ordered by creation time. The page starts after the position or, with `backwards`, ends
    before it.
    """

    order: Order
    position: Position
    backwards: bool = False


def encode_row_cursor(kind: str, cursor: RowCursor) -> str:
    created_at, row_id = cursor.position
    return _encode([kind, cursor.order, created_at.astimezone(UTC).isoformat(), row_id, cursor.backwards])


def decode_row_cursor(kind: str, text: str | None, order: Order | None) -> RowCursor | None:
    if text is None:
        return None
    match _decode(kind, text):
        case [("asc" | "desc") as direction, str(created_at), str(row_id), bool(backwards)] if "\x00" not in row_id:
            _check_order(direction, order)
            return RowCursor(direction, (_parse_time(created_at), row_id), backwards)
    raise _invalid_cursor()


def encode_number_cursor(kind: str, order: Order, number: int) -> str:
    return _encode([kind, order, number])


def decode_number_cursor(kind: str, text: str | None, order: Order | None) -> tuple[Order, int] | None:
    if text is None:
        return None
    match _decode(kind, text):
        case [("asc" | "desc") as direction, int(number)] if 0 <= number <= _MAX_SEQ:
            _check_order(direction, order)
            return direction, number
    raise _invalid_cursor()


def encode_id_cursor(kind: str, row_id: str) -> str:
    return _encode([kind, row_id])


def decode_id_cursor(kind: str, text: str | None) -> str | None:
    if text is None:
        return None
    match _decode(kind, text):
        case [str(row_id)] if "\x00" not in row_id:
            return row_id
    raise _invalid_cursor()


@dataclass(frozen=True, slots=True)
class PageCursors:
    """The cursors of the next and the previous page."""

    next_page: str | None
    prev_page: str | None


def cut_page(
    kind: str,
    rows: Sequence[T],
    position_of: Callable[[T], Position],
    *,
    limit: int,
    order: Order,
    cursor: RowCursor | None,
) -> tuple[Sequence[T], PageCursors]:
    """Cuts one page out of up to `limit + 1` rows. The additional row shows that there are more in that direction."""
    backwards = cursor is not None and cursor.backwards
    more = len(rows) > limit
    page = (rows[-limit:] if backwards else rows[:limit]) if more else rows
    if not page:
        return page, PageCursors(None, None)
    after = encode_row_cursor(kind, RowCursor(order, position_of(page[-1])))
    before = encode_row_cursor(kind, RowCursor(order, position_of(page[0]), backwards=True))
    if backwards:
        return page, PageCursors(after, before if more else None)
    return page, PageCursors(after if more else None, before if cursor is not None else None)


async def list_newest_first(
    kind: str,
    page: Page,
    cursor_text: str | None,
    read: Callable[[Page], Awaitable[Sequence[R]]],
    serialize: Callable[[R], Json],
) -> Response:
    """Responds with one page of a list. `page` has the limit and filters of the request, `cursor_text` its cursor."""
    cursor = decode_row_cursor(kind, cursor_text, "desc")
    rows = await read(replace(page, limit=page.limit + 1, after=cursor.position if cursor else None))
    page_rows, cursors = cut_page(
        kind, rows, lambda row: (row.created_at, row.id), limit=page.limit, order="desc", cursor=cursor
    )
    return list_response([serialize(row) for row in page_rows], next_page=cursors.next_page)


def _encode(parts: list[Json]) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def _decode(kind: str, text: str) -> list[Json]:
    if len(text) > _MAX_LENGTH:
        raise _invalid_cursor()
    try:
        parts = orjson.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError) as error:
        raise _invalid_cursor() from error
    if not isinstance(parts, list) or not parts or parts[0] != kind:
        raise _invalid_cursor()
    return parts[1:]


def _parse_time(text: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(text)
        return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise _invalid_cursor() from error


def _check_order(cursor_order: str, requested_order: Order | None) -> None:
    if requested_order is not None and requested_order != cursor_order:
        raise InvalidRequest(
            f"page: the cursor belongs to a list with order {cursor_order!r}",
            field="page",
            help_text="Use the same order as for the first page, or start again without a cursor.",
        )


def _invalid_cursor() -> InvalidRequest:
    return InvalidRequest(
        "page: must be a cursor that this list returned",
        field="page",
        help_text="Pass the `next_page` of the previous page unchanged, or omit `page`.",
    )
