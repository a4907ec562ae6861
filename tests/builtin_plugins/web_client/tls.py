"""TLS in front of a server on loopback, so that a browser meets it under its public name."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@asynccontextmanager
async def tls_before(url: str, folder: Path) -> AsyncIterator[int]:
    """Pass what comes by TLS on to `url`; yields the port."""
    server = await asyncio.start_server(_to(url), "127.0.0.1", 0, ssl=_context(folder))
    async with server:
        yield server.sockets[0].getsockname()[1]


def _to(url: str):  # type: ignore[no-untyped-def]
    target = urlsplit(url)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, before = await asyncio.open_connection(target.hostname, target.port)
        await asyncio.gather(_pass_on(reader, before), _pass_on(behind, writer))

    return serve


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, ssl.SSLError):
        while part := await reader.read(65_536):
            writer.write(part)
            await writer.drain()
    writer.close()


def _context(folder: Path) -> ssl.SSLContext:
    """A certificate of one's own; the browser of the test takes any."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    kind, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, kind, none)
    path.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
