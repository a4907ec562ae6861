"""The configuration files in docs/deploy, run by the real proxies in front of a platform."""

from __future__ import annotations

import asyncio
import getpass
import logging
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
import pytest_asyncio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kernel.testing import Actor, Running, missing, platforms
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.processes import free_port

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCS = Path(__file__).resolve().parents[2] / "docs" / "deploy"
MEGABYTE = 1 << 20


@dataclass
class Certificate:
    """A self-signed one for 127.0.0.1."""

    chain: Path
    key: Path

    @property
    def trusting(self) -> ssl.SSLContext:
        """A client that trusts it."""
        return ssl.create_default_context(cafile=str(self.chain))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """Made for these tests."""
    folder = tmp_path_factory.mktemp("tls")
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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """The platform that both proxies stand in front of."""
    env = {"TRUSTED_PROXY_CIDRS": "127.0.0.1/32"}
    async with platforms(tmp_path_factory.mktemp("behind")) as start:
        yield await start("platform_ops", "rag", "web_client", HashEmbeddings, env=env)


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
    assert sub_path is not None, "the documentation no longer shows a sub-path"
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


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=PROXIES)
async def proxied(
    request: pytest.FixtureRequest,
    running: Running,
    certificate: Certificate,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Running]:
    """The platform as clients of the proxy see it."""
    if shutil.which(request.param) is None:
        missing(f"{request.param} is not installed")
    folder, port = tmp_path_factory.mktemp(request.param), free_port()
    command = PROXIES[request.param](running, certificate, port, folder)
    with started(command, folder / "log"):
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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def password(running: Running) -> str:
    """Of the first administrator, who becomes Platform Admin."""
    return (await running.user("ada", role="admin")).password


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ada(proxied: Running, password: str) -> Actor:
    """The administrator, signed in through the proxy."""
    return await proxied.sign_in("ada", password)


async def test_tls_and_the_clients_address(proxied: Running) -> None:
    """Requests come in over TLS; a client without the certificate is refused."""
    assert (await proxied.anonymous.get("/health")).status == 200
    async with aiohttp.ClientSession() as stranger:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await stranger.get(f"{proxied.url}/health")


async def test_below_a_path(proxied: Running, ada: Actor) -> None:
    """The same API below a path of another site."""
    assert (await ada.get("/platform/v1/backups")).status == 200
    assert (await proxied.anonymous.get("/platform/v1/status")).json()["services"]


@asynccontextmanager
async def log_lines(ada: Actor) -> AsyncIterator[aiohttp.StreamReader]:
    """A stream that ends only when its reader leaves."""
    url = f"{ada.running.url}/v1/containers/api-gateway/logs?follow=true&tail=1"
    headers = {"Authorization": f"Bearer {ada.token}"}
    async with ada.running.session.get(url, headers=headers) as answer:
        assert answer.status == 200
        yield answer.content


async def test_streams_pass_in_pieces(ada: Actor) -> None:
    """Each event arrives while the stream is still open."""
    log = logging.getLogger("acme")
    log.warning("before")
    async with log_lines(ada) as lines:
        for number in range(3):
            log.warning("line %s", number)
            async with asyncio.timeout(5):
                while f"line {number}".encode() not in await lines.readline():
                    pass


async def test_an_upload_of_50_mb(ada: Actor) -> None:
    """The largest upload passes; a larger one is 413, by the proxy or the platform."""
    base = (await ada.post("/v1/rag/knowledge-bases", json={"name": "Large"})).json()["id"]
    path = f"/v1/rag/knowledge-bases/{base}/upload"
    content = (b"A line of a large file, again and again.\n" * (50 * MEGABYTE // 40))[: 50 * MEGABYTE]
    sent = await ada.upload(path, "large.txt", content)
    assert (sent.status, sent.json()["size_bytes"]) == (202, 50 * MEGABYTE), sent.body[:300]
    try:
        refused = (await ada.upload(path, "larger.txt", content + content)).status
    except aiohttp.ClientError:  # the proxy may close the connection on a body that it refused
        refused = 413
    assert refused == 413
