"""What the api is given: the ports, and the few settings that change what a request may say."""

from dataclasses import dataclass
from typing import Final

from fastapi import Request

from footplate.domain.services import Health, Keys, Notifier, Reads, Tails, Units

MAX_BODY: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServices:
    reads: Reads
    units: Units
    notifier: Notifier
    tails: Tails
    keys: Keys
    health: Health
    harnesses: frozenset[str]
    """Names that an agent may choose from."""
    ignore_unknown_fields: bool = False
    """For clients newer than the server: what nobody knows is dropped instead of refused."""
    max_body: int = MAX_BODY


def services_of(request: Request) -> ApiServices:
    services: ApiServices = request.app.state.services
    return services
