"""Mailboxes on dovecot. The suite for all sources does not fit: messages have no paths, and never change."""

from __future__ import annotations

import asyncio
import imaplib
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, aclosing
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr, ValidationError

from builtin_plugins.source_imap.mailbox import MailboxSource, open_mailbox, watch_mailbox
from builtin_plugins.source_imap.numbers import as_ranges, from_ranges
from builtin_plugins.source_imap.replies import ReplyBroken, read_folders
from builtin_plugins.source_imap.settings import ImapSettings
from builtin_plugins.sources.api import (
    CredentialRefused,
    GoneItem,
    ItemVanished,
    ListingEnd,
    SourceFault,
    SourceItem,
    SourceMisplaced,
    SourceSetup,
    SourceUnreachable,
)
from builtin_plugins.sources.conformance import read_item
from kernel.testing import Running, missing, platforms
from tests.fakes.hash_embeddings import HashEmbeddings
from tests.fakes.mail_server import PASSWORD, USER, MailServer, has_dovecot, mail_server
from tests.fakes.processes import free_ports

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def server() -> Iterator[MailServer]:
    if not has_dovecot():
        missing("dovecot is missing; apt-get install dovecot-imapd")
    with mail_server() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(server.certificate))
        yield server


@pytest.fixture
def mail(server: MailServer) -> Iterator[imaplib.IMAP4]:
    """Somebody else's client, and an empty mailbox."""
    client = server.client()
    for folder in ("Work", "INBOX"):
        client.create(folder)
        client.select(folder)
        client.uid("STORE", "1:*", "+FLAGS.SILENT", "(\\Deleted)")
        client.expunge()
    yield client
    client.logout()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory, server: MailServer) -> AsyncIterator[Running]:
    env = {"PLATFORM_OUTGOING_ALLOWED": "localhost,127.0.0.1"}
    async with platforms(tmp_path_factory.mktemp("platform")) as start:
        yield await start("source_imap", HashEmbeddings(), env=env)


def opened(
    running: Running, server: MailServer, password: str = PASSWORD, **fields: Any
) -> AbstractAsyncContextManager[MailboxSource]:
    settings = ImapSettings(**{"host": "localhost", "port": server.tls, "user": USER, **fields})
    return open_mailbox(SourceSetup(running.platform, "one", settings, SecretStr(password)))


def message(subject: str, *, answers: str = "", replies_to: str = "", attached: bytes = b"") -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "bob@example.org", USER, subject
    mail["Message-ID"] = f"<{subject.encode().hex()}@example.org>"
    if answers:
        mail["References"] = f"<{answers}@example.org> <between@example.org>"
    if replies_to:
        mail["In-Reply-To"] = f"Your letter <{replies_to.encode().hex()}@example.org>"
    mail.set_content(f"A letter about {subject}.")
    if attached:
        mail.add_attachment(attached, maintype="application", subtype="octet-stream", filename="a.bin")
    return mail.as_bytes(policy=mail.policy.clone(linesep="\r\n"))


def put(mail: imaplib.IMAP4, content: bytes, folder: str = "INBOX") -> None:
    status, _ = mail.append(folder, "", "", content)
    assert status == "OK"


async def listed(
    source: MailboxSource, since: str | None = None
) -> tuple[list[SourceItem], set[str], ListingEnd]:
    async with aclosing(source.documents(since)) as listing:
        found = [one async for one in listing]
    end = found.pop()
    assert isinstance(end, ListingEnd)
    gone = {one.identity for one in found if isinstance(one, GoneItem)}
    return [one for one in found if isinstance(one, SourceItem)], gone, end


@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_messages(running: Running, server: MailServer, mail: imaplib.IMAP4, security: str) -> None:
    """Whole, with attachments, and the thread they belong to; nothing is marked as seen."""
    large = message("grüße an alle", answers="first", attached=bytes(range(256)) * 6_000)
    put(mail, large, "Work")
    put(mail, message("in the bin"), "Trash")
    port = server.tls if security == "tls" else server.starttls
    async with opened(running, server, security=security, port=port) as source:
        [item], gone, _ = await listed(source)
        assert (await read_item(source, item), gone) == (large, set())
    assert item.path.startswith("Work/") and item.path.endswith(" grüße an alle.eml")
    assert (item.details["thread"], item.details["sender"]) == ("<first@example.org>", "bob@example.org")
    mail.select("Work")
    assert mail.uid("SEARCH", "SEEN")[1] == [b""]


async def test_replies_without_references_belong_to_the_thread(
    running: Running, server: MailServer, mail: imaplib.IMAP4
) -> None:
    """Of the first mail, in whichever folder; also what comes later, and what only refers to a reply."""
    put(mail, message("second", replies_to="first"))
    put(mail, message("first"), "Work")
    put(mail, message("third", replies_to="second"))
    put(mail, message("lost", replies_to="nowhere"))
    async with opened(running, server) as source:
        items, _, end = await listed(source)
        put(mail, message("fourth", replies_to="third"))
        put(mail, message("fifth", answers=b"second".hex()))
        more, _, _ = await listed(source, end.cursor)
    threads = {one.path.rpartition(" ")[2]: one.details["thread"] for one in [*items, *more]}
    first, nowhere = (f"<{one.encode().hex()}@example.org>" for one in ("first", "nowhere"))
    of_first = dict.fromkeys((f"{one}.eml" for one in ("first", "second", "third", "fourth", "fifth")), first)
    assert threads == {**of_first, "lost.eml": nowhere}


async def test_mails_that_answer_each_other_have_a_thread(
    running: Running, server: MailServer, mail: imaplib.IMAP4
) -> None:
    put(mail, message("one", replies_to="two"))
    put(mail, message("two", replies_to="one"))
    async with opened(running, server) as source:
        items, _, _ = await listed(source)
    assert len({one.details["thread"] for one in items}) == 1


async def test_only_what_has_come_and_gone(running: Running, server: MailServer, mail: imaplib.IMAP4) -> None:
    for name in ("one", "two", "three"):
        put(mail, message(name))
    async with opened(running, server) as source:
        first, _, end = await listed(source)
        assert (len(first), end.only_changes) == (3, False)
        mail.select("INBOX")
        mail.uid(
            "STORE", str(_uid(first[0])), "+FLAGS", "(\\Deleted)"
        )  # as clients do, long before it is expunged
        put(mail, message("four"))
        second, gone, end = await listed(source, end.cursor)
        assert ([one.path.endswith(" four.eml") for one in second], gone) == ([True], {first[0].identity})
        assert end.only_changes
        assert (await listed(source, end.cursor))[:2] == ([], set())
        mail.expunge()
        with pytest.raises(ItemVanished):
            await read_item(source, first[0])


def _uid(item: SourceItem) -> int:
    return int(item.etag.split()[1])


async def test_mail_is_noticed_when_it_arrives(
    running: Running, server: MailServer, mail: imaplib.IMAP4
) -> None:
    """And when it is deleted; what is only read by somebody is no change. A wrong password is a fault."""
    settings = ImapSettings(host="localhost", port=server.tls, user=USER)
    setup = SourceSetup(running.platform, "one", settings, SecretStr(PASSWORD))
    async with aclosing(watch_mailbox(setup)) as changes:

        async def noticed() -> None:
            await asyncio.wait_for(anext(changes), 30)

        await noticed()
        arriving = asyncio.create_task(noticed())
        put(mail, message("now"))
        await arriving
        mail.select("INBOX")
        leaving = asyncio.create_task(noticed())
        mail.uid("STORE", "1:*", "+FLAGS", "(\\Seen)")
        mail.uid("STORE", "1:*", "+FLAGS", "(\\Deleted)")
        await leaving
    wrong = SourceSetup(running.platform, "one", settings, SecretStr("wrong"))
    with pytest.raises(CredentialRefused):
        await anext(watch_mailbox(wrong))


async def test_moved_or_renumbered(running: Running, server: MailServer, mail: imaplib.IMAP4) -> None:
    """The same message is recognized by its fingerprint."""
    put(mail, message("moved"))
    put(mail, message("numbered"), "Work")
    async with opened(running, server) as source:
        first, _, end = await listed(source)
        mail.select("INBOX")
        assert mail.uid("MOVE", "1:*", "Work")[0] == "OK"
        mail.select("INBOX")
        assert mail.create("Other")[0] == "OK"
        mail.select("Work")
        assert mail.uid("MOVE", "1:*", "Other")[0] == "OK"
        mail.select("INBOX")
        assert mail.delete("Work")[0] == "OK"
        assert mail.rename("Other", "Work")[0] == "OK"  # the name is the same, UIDVALIDITY is another
        second, gone, _ = await listed(source, end.cursor)
    assert gone == {one.identity for one in first}
    assert {one.fingerprint for one in second} == {one.fingerprint for one in first}


async def test_a_mailbox_belongs_to_its_account(
    running: Running, server: MailServer, mail: imaplib.IMAP4
) -> None:
    """Of all who see the knowledge base, only the account with the mailbox's address reads its mails."""
    put(mail, message("secret plans"))
    ann, bob = await running.user(), await running.user()
    base = (await ann.post("/v1/rag/knowledge-bases", json={"name": "Mail"})).json()["id"]
    shared = await ann.patch(f"/v1/rag/knowledge-bases/{base}", json={"visibility": "shared"})
    assert shared.status == 200, shared.body
    settings = {"host": "localhost", "port": server.tls, "user": USER, "address": bob.user["email"]}
    body = {"kind": "imap", "name": "Mail", "settings": settings, "secret": PASSWORD}
    added = await ann.post(f"/v1/rag/knowledge-bases/{base}/sources", json=body)
    assert added.status == 201 and PASSWORD.encode() not in added.body, added.body
    await running.run_jobs()
    totals = [
        (await actor.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["total"] for actor in (ann, bob)
    ]
    assert totals == [0, 1]
    path = f"/v1/rag/sources/{added.json()['id']}"
    assert (await ann.get(f"{path}/rights")).json()["by_hand"] is False
    mine = {
        "kind": "person",
        "principal": bob.user["email"],
        "target": "account",
        "target_id": ann.user["id"],
    }
    said = await ann.put(f"{path}/counterparts", json={"items": [mine]})
    assert (said.status, said.json()["code"]) == (422, "validation_error"), said.body
    changed = {"settings": {**settings, "address": ann.user["email"]}, "secret": "wrong"}
    assert (await ann.patch(path, json=changed)).status == 200
    await running.run_jobs()
    assert (await ann.get(f"/v1/rag/knowledge-bases/{base}/documents")).json()["total"] == 0
    refused = (await ann.post(f"{path}/run", json={})).status
    await running.run_jobs()
    [last, *_] = (await ann.get(f"{path}/runs")).json()["items"]
    assert (refused, last["state"], last["gone"]) == (202, "credential_refused", 0)


async def test_hostile_headers(running: Running, server: MailServer, mail: imaplib.IMAP4) -> None:
    """Anybody can send a mail; it must not keep the others away."""
    headers = [
        b"From: " + b"(" * 3_000,
        b"Message-ID: <" + b"(" * 3_000,
        b"Subject: \xff=?nope?q?a?= =?utf-8?b?!?=",
        b"References: " + b"<a@b> " * 20_000,
        b"From: " + b"a." * 20_000,
    ]
    for header in headers:
        put(mail, header + b"\r\n\r\nText.\r\n")
    async with opened(running, server) as source:
        items, _, _ = await listed(source)
    assert len(items) == len(headers)
    assert max(len(value) for item in items for value in item.details.values()) <= 2_000


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b'(\\HasNoChildren) "." "Ablage.Gr&APw-n"', "Ablage/Gr\u00fcn"),
        (b'() "/" "Gr\xc3\xbcn"', "Gr\u00fcn"),
        (b'() "/" "Gr\xfcn"', "Gr\ufffdn"),
    ],
)
async def test_names_of_folders(line: bytes, name: str) -> None:
    """Also those in no encoding that is allowed: what the server is asked for are its own bytes."""
    [folder] = read_folders([line])
    assert folder.name == name
    assert folder.quoted.encode("latin-1") in line
    with pytest.raises(ReplyBroken):
        read_folders([(b'() "/" {9}', b"a\r\nb LIST")])


async def test_faults(running: Running, server: MailServer, mail: imaplib.IMAP4) -> None:
    cases: list[tuple[dict[str, Any], type[SourceFault]]] = [
        ({"password": "another"}, CredentialRefused),
        ({"port": free_ports(1)[0]}, SourceUnreachable),
        ({"host": "127.0.0.1"}, SourceMisplaced),  # not what the certificate is for
        ({"folders": "INBOX, Nowhere"}, SourceMisplaced),
        ({"port": server.starttls}, SourceUnreachable),  # TLS is not spoken there
    ]
    for fields, fault in cases:
        async with opened(running, server, **fields) as source:
            with pytest.raises(fault):
                await listed(source)


async def test_a_private_address_is_refused(tmp_path: Path, server: MailServer) -> None:
    async with platforms(tmp_path) as start:
        closed = await start("source_imap")
        with pytest.raises(SourceMisplaced):
            async with opened(closed, server):
                pass


@pytest.mark.parametrize("text", ["", "7", "1:3", "1:2,4,6:9"])
async def test_ranges(text: str) -> None:
    assert as_ranges(from_ranges(text)) == text


async def test_whose_mailbox_it_is_must_be_said() -> None:
    with pytest.raises(ValidationError):
        ImapSettings(host="imap.example.org", user="ada")
    assert ImapSettings(host="imap.example.org", user="ada", address="a@example.org").owner == "a@example.org"
