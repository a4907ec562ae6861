"""nginx and Caddy with the configuration files in docs/deploy, in front of a platform."""

from __future__ import annotations

import asyncio
import getpass
import re
import shutil
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kernel.testing import Running, missing
from tests.fakes.processes import free_port

DOCS = Path(__file__).resolve().parents[2] / "docs" / "deploy"


@dataclass
class Certificate:
    """A self-signed one for 127.0.0.1."""

    chain: Path
    key: Path

    @property
    def trusting(self) -> ssl.SSLContext:
        """A client that trusts it."""
        return ssl.create_default_context(cafile=str(self.chain))


def certificate_in(folder: Path) -> Certificate:
    """A new one."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    found = Certificate(folder / "platform.crt", folder / "platform.key")
    found.chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    found.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return found


@contextmanager
def started(command: list[str], log: Path) -> Iterator[None]:
    """A proxy in the foreground."""
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            yield
        finally:
            process.kill()  # on a signal to end, Caddy waits for its connections, which this loop serves


def nginx(running: Running, certificate: Certificate, port: int, folder: Path) -> list[str]:
    """nginx with the documented server, once at the root and once below a path."""
    text = (DOCS / "nginx.conf").read_text()
    sub_path = re.search(r"#     (location /platform/ \{)\n#         (.*)\n#     \}", text)
    paths = re.search(r"# (map .*?\n)# (    .*?\n)# \}", text)
    assert sub_path is not None and paths is not None, "the documentation no longer shows a sub-path"
    text = f"{paths[1]}{paths[2]}}}\n{text}"
    text = text.replace("listen 443 ssl http2", f"listen 127.0.0.1:{port} ssl http2")
    text = text.replace("/etc/ssl/platform.crt", str(certificate.chain))
    text = text.replace("/etc/ssl/platform.key", str(certificate.key))
    text = text.replace("127.0.0.1:8000", running.url.removeprefix("http://"))
    text = text.replace(
        "    location / {", f"    {sub_path[1]}\n        {sub_path[2]}\n    }}\n\n    location / {{"
    )
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log stderr;\nuser {getpass.getuser()};\n"
        "events {}\nhttp {\naccess_log off;\n" + temporary + text + "}\n"
    )
    return ["nginx", "-e", "stderr", "-p", str(folder), "-c", str(config)]


def caddy(running: Running, certificate: Certificate, port: int, folder: Path) -> list[str]:
    """Caddy with the documented site, once at the root and once below a path."""
    text = (DOCS / "Caddyfile").read_text()
    block = re.search(r"\treverse_proxy .*?\n\t\}\n", text, re.S)
    assert block is not None and "handle_path /platform/*" in text
    below = f"\thandle_path /platform/* {{\n{block[0]}\t}}\n"
    text = text.replace(block[0], f"{below}\thandle {{\n{block[0]}\t}}\n")
    text = text.replace(
        "platform.example.org {", f"https://127.0.0.1:{port} {{\n\ttls {certificate.chain} {certificate.key}"
    )
    text = text.replace("127.0.0.1:8000", running.url.removeprefix("http://"))
    config = folder / "Caddyfile"
    config.write_text("{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\n" + text)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(config)]


PROXIES = {"nginx": nginx, "caddy": caddy}


@asynccontextmanager
async def behind(
    kind: str, running: Running, certificate: Certificate, folder: Path
) -> AsyncIterator[Running]:
    """The platform as clients of a proxy of this kind see it. Skips where it is not installed."""
    if shutil.which(kind) is None:
        missing(f"{kind} is not installed")
    port = free_port()
    with started(PROXIES[kind](running, certificate, port, folder), folder / "log"):
        connector = aiohttp.TCPConnector(ssl=certificate.trusting)
        async with aiohttp.ClientSession(connector=connector) as session:
            found = Running(running.platform, f"https://127.0.0.1:{port}", session)
            await answering(found, folder / "log")
            yield found


async def answering(proxied: Running, log: Path) -> None:
    """Wait for the first answer."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            if (await proxied.anonymous.get("/livez")).status == 200:
                return
        except aiohttp.ClientError:
            await asyncio.sleep(0.05)
    said = await asyncio.to_thread(log.read_text)
    pytest.fail(f"the proxy does not answer: {said[-2000:]}")
