"""Defines `Page`: the position, order and filters with which a caller requests one page of a list."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Order = Literal["asc", "desc"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of a list. `after` is the (created_at, id) of the last row seen."""

    limit: int
    order: Order = "desc"
    after: tuple[datetime, str] | None = None
    before: tuple[datetime, str] | None = None
    """Page backwards: the rows just before this one, still returned in `order`."""
    created_gt: datetime | None = None
    created_gte: datetime | None = None
    created_lt: datetime | None = None
    created_lte: datetime | None = None
    include_archived: bool = False
