"""Test certificates, and a proxy that puts TLS in front of a server without it."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from footplate.stack.temporal_connection import UNIX_PREFIX


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    certificate: Path
    key: Path


class Authority:
    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._build(self._name, self._key, None, days=1)
        self.certificate = directory / f"{name}.pem"
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, host: str, *, days: int = 1) -> IssuedCertificate:
        """Issue a certificate. `days`: until it expires, negative if it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        certificate = self._build(subject, key, host, days=days)
        issued = IssuedCertificate(*(self._directory / f"{host}.{days}.{part}" for part in ("pem", "key")))
        issued.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        issued.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return issued

    def _build(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, host: str | None, *, days: int
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=10))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=host is None, path_length=None), critical=True)
        )
        if host is not None:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        return builder.sign(self._key, hashes.SHA256())


@contextlib.asynccontextmanager
async def tls_proxy(target: str, server: IssuedCertificate, *, clients: Authority | None = None) -> AsyncIterator[str]:
    """Yield the address of the proxy. `clients`: the authority of the client certificates that it requires."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server.certificate, server.key)
    context.set_alpn_protocols(["h2"])
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients.certificate)

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other_reader, other_writer = await _connect(target)
        await asyncio.gather(_copy(reader, other_writer), _copy(other_reader, writer))

    listening = await asyncio.start_server(connect, "127.0.0.1", 0, ssl=context)
    try:
        yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()


async def _connect(target: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to `host:port`, or to a Temporal server that listens on a socket (`unix:/path`), as its clients do."""
    if not target.startswith(UNIX_PREFIX):
        host, _, port = target.rpartition(":")
        return await asyncio.open_connection(host, int(port))
    reader, writer = await asyncio.open_unix_connection(target.removeprefix(UNIX_PREFIX))
    writer.write(b"CONNECT temporal:7233 HTTP/1.1\r\nHost: temporal:7233\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
