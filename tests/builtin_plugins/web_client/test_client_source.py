"""The client's source, as far as it can be read: vendored files, calls to the API, texts, sizes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from builtin_plugins.source_confluence.kind import CONFLUENCE
from builtin_plugins.source_drive.kind import DRIVE
from builtin_plugins.source_feed.feed import FEED
from builtin_plugins.source_folder.kind import FOLDER
from builtin_plugins.source_git.repository import GIT
from builtin_plugins.source_imap.mailbox import IMAP
from builtin_plugins.source_s3.bucket import S3
from builtin_plugins.source_sharepoint.kind import SHAREPOINT
from builtin_plugins.source_web.site import WEB
from builtin_plugins.source_webdav.kind import WEBDAV
from builtin_plugins.sources.api import SourceKind
from tests.builtin_plugins.web_client.language_files import FILES, faults, known_texts

ROOT = Path(__file__).parents[3]
STATIC = ROOT / "builtin_plugins/web_client/static"
VENDOR = STATIC / "vendor"
LONGEST = 300

CALL = re.compile(r'call\("(GET|POST|PUT|PATCH|DELETE)", "([^"]+)"')
VENDORED = json.loads((VENDOR / "vendor.json").read_text(encoding="utf-8"))


def own_modules() -> Iterator[Path]:
    return (path for path in sorted(STATIC.rglob("*.js")) if VENDOR not in path.parents)


def name_of(path: Path) -> str:
    return str(path.relative_to(STATIC))


@pytest.mark.parametrize("item", VENDORED, ids=lambda item: item["file"])
def test_vendored_file_is_what_npm_has(item: dict[str, object]) -> None:
    """Each file has the digest that is written down; undoing the listed changes gives the published file."""
    text = (VENDOR / str(item["file"])).read_bytes().decode()
    assert hashlib.sha256(text.encode()).hexdigest() == item["sha256"]
    changes = item["changes"]
    assert isinstance(changes, list)
    for before, after in reversed(changes):
        text = text.replace(after, before) if after else text + before
    assert hashlib.sha256(text.encode()).hexdigest() == item["source_sha256"]
    assert item["licence"] in ("MIT", "Apache-2.0")
    assert re.fullmatch(r"\d+\.\d+\.\d+", str(item["version"]))


@pytest.mark.parametrize(
    "kind",
    [CONFLUENCE, DRIVE, FEED, FOLDER, GIT, IMAP, S3, SHAREPOINT, WEB, WEBDAV],
    ids=lambda kind: kind.name,
)
def test_forms_of_sources_come_in_all_languages(kind: SourceKind) -> None:
    fields = kind.settings.model_json_schema()["properties"].values()
    texts = [kind.title, kind.secret, *(one.get(name) for one in fields for name in ("title", "description"))]
    form = (STATIC / "pages/sources/forms.js").read_text(encoding="utf-8")
    assert [text for text in texts if text and f'"{text}"' not in form] == []


def test_every_vendored_file_is_listed() -> None:
    """No code comes in without version, license and digest, and each license's text is there."""
    assert {path.name for path in VENDOR.glob("*.js")} == {item["file"] for item in VENDORED}
    for item in VENDORED:
        name = item["package"].strip("@").replace("/", "-")
        assert (VENDOR / f"LICENSE.{name}.txt").is_file()


def test_every_call_is_in_the_document() -> None:
    """The client calls what the API offers: each method and path stands in its document."""
    document = json.loads((ROOT / "schemas/openapi.json").read_text(encoding="utf-8"))
    calls = CALL.findall((STATIC / "lib/api.js").read_text(encoding="utf-8"))
    assert len(calls) > 80
    unknown = [f"{m} {path}" for m, path in calls if m.lower() not in document["paths"].get(path, {})]
    assert unknown == []


def test_calls_stand_in_one_place() -> None:
    """No other module writes a path of the API, but the refresh of a session, which a request waits for."""
    found = {
        name_of(path) for path in own_modules() if '"/v1/' in (text := path.read_text()) or "`/v1/" in text
    }
    assert found == {"lib/api.js"}
    assert (STATIC / "lib/session.js").read_text().count("/v1/") == 1


def test_every_call_is_used_and_exists() -> None:
    """Each name of the list is called somewhere, and no page calls a name that isn't there."""
    text = (STATIC / "lib/api.js").read_text(encoding="utf-8")
    named = set(re.findall(r"^  (\w+): call\(", text, re.MULTILINE))
    elsewhere = (path.read_text(encoding="utf-8") for path in own_modules() if path.name != "api.js")
    used = {name for other in elsewhere for name in re.findall(r"(?<!/)\bapi\.(\w+)", other)}
    assert used - named == set()
    assert named - used == set()


def test_modules_are_short() -> None:
    pages = (path for path in own_modules() if path.parent.name != "languages")
    long = {name_of(path): len(path.read_text().splitlines()) for path in pages}
    assert {name: lines for name, lines in long.items() if lines > LONGEST} == {}


def test_modules_say_what_they_are_for() -> None:
    assert [name_of(path) for path in own_modules() if not path.read_text().startswith("/**")] == []


def test_imports_lead_somewhere() -> None:
    """What a module imports is there; nothing comes from another host."""
    wrong = []
    for path in own_modules():
        for wanted in re.findall(r'(?:\bfrom |\bimport\()"([^"]+)"', path.read_text(encoding="utf-8")):
            if not wanted.startswith(".") or not (path.parent / wanted).resolve().is_file():
                wrong.append(f"{name_of(path)}: {wanted}")
    assert wrong == []


TAKEN = re.compile(r'^import \{ ([^}]+) \} from "([^"]+)"', re.MULTILINE)
GIVEN = re.compile(r"^export (?:async )?(?:function\*?|const|class) (\w+)", re.MULTILINE)
LISTED = re.compile(r"^export \{([^}]*)\}|export\{([^}]*)\}", re.MULTILINE)


def names_of(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    listed = ",".join("".join(found) for found in LISTED.findall(text)).split(",")
    return {*GIVEN.findall(text), *(name.split(" as ")[-1].strip() for name in listed)}


def test_what_is_imported_is_there_and_used() -> None:
    """Each imported name is one that the other module exports, and the module does something with it."""
    wrong = []
    for path in own_modules():
        text = path.read_text(encoding="utf-8")
        for names, source in TAKEN.findall(text):
            given = names_of((path.parent / source).resolve())
            for name in (part.strip() for part in names.split(",")):
                if name.split(" as ")[0] not in given:
                    wrong.append(f"{name_of(path)}: {source} has no {name}")
                elif len(re.findall(rf"\b{name.split(' as ')[-1]}\b", text)) < 2:
                    wrong.append(f"{name_of(path)}: {name} is not used")
    assert wrong == []


def test_no_text_becomes_markup() -> None:
    """Nothing parses text as HTML or runs it, so hostile names stay text; only the frame for previews does,
    where no script runs.
    """
    barred = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function")
    found = [
        f"{name_of(path)}: {word}" for path in own_modules() for word in barred if word in path.read_text()
    ]
    assert found == ["pages/documents/preview.js: innerHTML"]


def test_tokens_are_not_left_behind() -> None:
    """No token goes to localStorage, which outlives the browser: only choices do."""
    kept = {
        key
        for path in own_modules()
        for key in re.findall(r"localStorage\.setItem\((\w+)", path.read_text(encoding="utf-8"))
    }
    assert kept == {"KEPT"}
    assert "localStorage" not in (STATIC / "lib/session.js").read_text()


@pytest.mark.parametrize("language", FILES, ids=lambda path: path.stem)
def test_language_is_complete(language: Path) -> None:
    """It has every text and no other, with the same placeholders; none is left in English by accident."""
    assert faults(language) == {}


def test_languages_are_found() -> None:
    """The checks above compare real texts, and there is more than one language to compare."""
    assert {"de", "es", "fr"} <= {path.stem for path in FILES}
    assert len(known_texts()) > 400


AUDITED = re.compile(r'\baudit\(\s*(?:\w+,\s*)?"[a-z_.]*?(\w+)",\s*"(\w+)"')


def test_the_audit_log_has_words() -> None:
    """Every action and kind of thing that is written into the audit log as such is shown in plain words."""
    words = (STATIC / "pages/operations/audit-words.js").read_text(encoding="utf-8")
    actions, kinds = (
        set(re.findall(r"^  (\w+): \{ title", part, re.MULTILINE)) for part in words.split("const KINDS")
    )
    sources = [path for folder in ("kernel", "builtin_plugins") for path in (ROOT / folder).rglob("*.py")]
    written = {pair for path in sources for pair in AUDITED.findall(path.read_text(encoding="utf-8"))}
    assert len(written) > 40
    assert {action for action, _ in written} - actions == set()
    assert {kind for _, kind in written} - kinds == set()
