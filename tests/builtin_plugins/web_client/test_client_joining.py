"""Modules joined into one: each still does what it did, and no state exists twice."""

from __future__ import annotations

import posixpath
import re

import pytest

from builtin_plugins.web_client.files import ENTRIES, Files
from builtin_plugins.web_client.joining import join

IMPORTED = re.compile(r'(?:\bfrom|\bimport\()\s*"(\.[^"]+)"')
MODULES = {
    "main.js": 'import { count } from "./lib/count.js";\nimport("./pages/other.js");\ncount();\n',
    "lib/count.js": 'import { one as step } from "../vendor/tally.js";\n'
    + "let sum = 0;\nexport function count() {\n  sum += step;\n  return sum;\n}\n",
    "vendor/tally.js": "var n=1;export{n as one};",
    "pages/other.js": 'import { count as again } from "../lib/count.js";\nagain();\n',
}


async def test_every_file_is_joined_once() -> None:
    """What an entry took is served nowhere else, so that nothing loads it a second time."""
    files = Files.read()
    scripts = [name for name in files.names("") if name.endswith(".js") and not name.startswith("vendor/pdf")]
    for name in scripts:
        found = files.find(name)
        assert found is not None
        for source in IMPORTED.findall(found.content.decode()):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), source))
            assert files.find(target) is not None, f"{name} imports {source}"
    assert files.find("lib/session.js") is None


@pytest.mark.parametrize("at", range(len(ENTRIES)), ids=lambda at: ENTRIES[at])
async def test_an_entry_is_complete(at: int) -> None:
    """What it imports besides is in the entries before it: nothing of it was left as its own file."""
    found = Files.read().find(ENTRIES[at])
    assert found is not None
    sources = re.findall(r"^import\b(?!\().*?[\"']([^\"']+)[\"'];?$", found.content.decode(), re.MULTILINE)
    folder = posixpath.dirname(ENTRIES[at])
    assert {posixpath.normpath(posixpath.join(folder, source)) for source in sources} <= {*ENTRIES[:at]}


@pytest.mark.parametrize(
    "statement",
    [
        'import "./b.js";',
        "import { b } from './b.js';",
        'import * as all from "./b.js";',
        'export * from "./b.js";',
        "export let b = 1;",
        "export default 1;",
    ],
)
@pytest.mark.parametrize("name", ["a.js", "page.js"])
def test_unknown_forms_are_refused(statement: str, name: str) -> None:
    """What would be left as it is stops the start, in modules that are joined and in others."""
    modules = {"a.js": "export const a = 1;\n", "b.js": "export const b = 1;\n", "page.js": "a();\n"}
    modules[name] += f"{statement}\n"
    with pytest.raises(ValueError, match=rf"{re.escape(name)} .*{re.escape(statement)}"):
        join(modules, ["a.js"])


def test_joining() -> None:
    """An entry holds what it imports; others import it from there; addresses follow their new place."""
    joined = join(MODULES, ["main.js"])
    assert joined.keys() == {"main.js", "pages/other.js"}
    assert (
        'import { module_1 } from "../main.js"; const { count: again } = module_1;'
        in joined["pages/other.js"]
    )
    assert joined["main.js"].index("module_0 =") < joined["main.js"].index("module_1 =")
    assert "return { one: n };" in joined["main.js"]
    assert 'import("./pages/other.js")' in joined["main.js"]


def test_what_an_entry_exports() -> None:
    """Its own names and its default, which others ask for when they load it."""
    modules = {"page.js": "export const A = 1;\nexport default function Page() {}\n"}
    text = join(modules, ["page.js"])["page.js"]
    assert "return { A: A, default: Page };" in text
    assert text.endswith("export const { A } = module_0;\nexport default module_0.default;\n")


def test_circles_are_refused() -> None:
    """Modules that import each other can't stand one after the other."""
    modules = {"a.js": 'import { b } from "./b.js";', "b.js": 'import { a } from "./a.js";'}
    with pytest.raises(ValueError, match=r"a\.js .*circle"):
        join(modules, ["a.js"])
