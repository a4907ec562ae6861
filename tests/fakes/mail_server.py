"""A mail server for tests: dovecot as a process of its own, without privileges, with one account."""

from __future__ import annotations

import imaplib
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.processes import free_ports

USER, PASSWORD = "ada@example.org", "grüner tee"
_PATIENCE = 20.0
_CONFIGURATION = """
base_dir = {home}/run
log_path = {home}/log
protocols = imap
listen = 127.0.0.1
ssl = required
ssl_cert = <{home}/cert.pem
ssl_key = <{home}/key.pem
default_internal_user = {user}
default_internal_group = {group}
default_login_user = {user}
first_valid_uid = 1
mail_location = maildir:{home}/mail
mail_max_userip_connections = 100
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {starttls}
  }}
  inet_listener imaps {{
    port = {tls}
    ssl = yes
  }}
}}
passdb {{
  driver = passwd-file
  args = scheme=PLAIN {home}/users
}}
userdb {{
  driver = static
  args = uid={user} gid={group} home={home}/home
}}
auth_failure_delay = 0 secs
namespace inbox {{
  inbox = yes
  separator = /
  mailbox Trash {{
    special_use = \\Trash
    auto = create
  }}
}}
"""


@dataclass(frozen=True)
class MailServer:
    """Where it listens, with TLS and for STARTTLS; `certificate` is a file that vouches for it."""

    tls: int
    starttls: int
    certificate: Path

    def client(self) -> imaplib.IMAP4:
        """A signed-in client that uses none of our code."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        client = imaplib.IMAP4_SSL("localhost", self.tls, ssl_context=context, timeout=20)
        client.authenticate("PLAIN", lambda _challenge: f"\0{USER}\0{PASSWORD}".encode())
        return client


def has_dovecot() -> bool:
    """Whether dovecot's IMAP server and openssl are installed."""
    return all(map(_program, ("dovecot", "openssl"))) and Path("/usr/lib/dovecot/imap").exists()


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """A server with an empty mailbox."""
    home = Path(tempfile.mkdtemp(prefix="dovecot-"))
    tls, starttls = free_ports(2)
    as_root = os.geteuid() == 0
    user, group = ("nobody", "nogroup") if as_root else (home.owner(), home.group())
    values = {"home": home, "user": user, "group": group, "tls": tls, "starttls": starttls}
    (home / "dovecot.conf").write_text(_CONFIGURATION.format(**values))
    (home / "users").write_text(f"{USER}:{PASSWORD}\n")
    _make_certificate(home)
    for name in ("mail", "home", "run"):
        (home / name).mkdir()
    if as_root:
        for place in (home, *home.iterdir()):
            shutil.chown(place, user, group)
    command = [_program("dovecot") or "", "-F", "-c", str(home / "dovecot.conf")]
    identity = {"user": user, "group": group, "extra_groups": ()} if as_root else {}
    process = subprocess.Popen(command, **identity)  # type: ignore[call-overload]
    try:
        _await_listening(process, tls, home)
        yield MailServer(tls, starttls, home / "cert.pem")
    finally:
        process.terminate()
        process.wait(20)
        shutil.rmtree(home, ignore_errors=True)


def _make_certificate(home: Path) -> None:
    command = [
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-keyout", str(home / "key.pem"), "-out", str(home / "cert.pem"), "-days", "2"),
        *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
    ]
    subprocess.run(command, check=True, capture_output=True)


def _await_listening(process: subprocess.Popen[bytes], port: int, home: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if process.poll() is not None or time.monotonic() > deadline:
            log = home / "log"
            raise AssertionError(f"dovecot does not start: {log.read_text() if log.exists() else ''}")
        time.sleep(0.05)


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin")
