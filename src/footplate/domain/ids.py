"""Generates ids: a prefix that names the type of object, then a time-ordered, unguessable body.

The body is a UUIDv7 in Crockford base 32: 48 bits of milliseconds, then 74 random bits. Later ids sort later, so new
rows are added at the end of an index.
"""

import secrets
import time
from typing import Final

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_LENGTH: Final = 26

AGENT: Final = "agent"
ENVIRONMENT: Final = "env"
SESSION: Final = "sesn"
EVENT: Final = "sevt"
THREAD: Final = "sthr"
TURN: Final = "turn"
API_KEY: Final = "key"
ORGANISATION: Final = "org"
REQUEST: Final = "req"
WORKER: Final = "wrkr"
API_PROCESS: Final = "apip"
PROJECT: Final = "proj"
WORKSPACE: Final = "wksp"
FILE: Final = "file"
RESOURCE: Final = "sesrsc"
MEMBER: Final = "memb"
TEAM: Final = "team"
STEP: Final = "step"
GROUP: Final = "sgrp"
BATCH: Final = "sbat"
WEBHOOK: Final = "whep"
WEBHOOK_DELIVERY: Final = "whdl"
DEPLOYMENT: Final = "depl"
DEPLOYMENT_RUN: Final = "drun"
TRIGGER: Final = "trig"
TRIGGER_DELIVERY: Final = "tdlv"
MERGE_CONFLICT: Final = "mcfl"
COMMENT: Final = "scmt"
SESSION_TEMPLATE: Final = "stpl"
BROWSER_SESSION: Final = "bses"
PUSH_SUBSCRIPTION: Final = "psub"


def new_id(prefix: str) -> str:
    value = (time.time_ns() // 1_000_000 << 80) | (7 << 76) | secrets.randbits(76)
    digits = []
    for _ in range(_LENGTH):
        value, digit = divmod(value, 32)
        digits.append(_ALPHABET[digit])
    return f"{prefix}_{''.join(reversed(digits))}"
