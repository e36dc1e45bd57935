"""Creates and checks the keys of notifications: the key pair of this server, and the keys of a browser.

`cryptography` is imported when it is needed, because every command of the command line reads the settings.
"""

import base64
import binascii
from typing import Final

from footplate.domain.sessions.notifications import VapidKey

_PRIVATE_BYTES: Final = 32
_POINT_BYTES: Final = 65
_AUTH_BYTES: Final = 16


def create_vapid_key() -> VapidKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    number = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
    return parse_vapid_key(_encode(number.to_bytes(_PRIVATE_BYTES, "big")))


def parse_vapid_key(private: str) -> VapidKey:
    """Return the pair of a private key. Raises `ValueError` if it is none."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    raw = _decode(private)
    if len(raw) != _PRIVATE_BYTES:
        raise ValueError(f"A private key has {_PRIVATE_BYTES} bytes, and this one has {len(raw)}.")
    public = ec.derive_private_key(int.from_bytes(raw, "big"), ec.SECP256R1()).public_key()
    return VapidKey(_encode(raw), _encode(public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)))


def is_browser_key(p256dh: str) -> bool:
    """Whether a text is the public key of a subscription: a point of the curve, uncompressed."""
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        raw = _decode(p256dh)
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), raw)
    except ValueError:
        return False
    return len(raw) == _POINT_BYTES


def is_auth_secret(auth: str) -> bool:
    try:
        return len(_decode(auth)) == _AUTH_BYTES
    except ValueError:
        return False


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), altchars="-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError("This is not base64url.") from error
