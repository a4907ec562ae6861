"""Reading manifests: what is accepted, what is refused, and where it says the fault is."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builtin_plugins.manifest_webhooks.loading import load_manifest, read_manifest
from builtin_plugins.manifest_webhooks.problems import ManifestError, Problem
from builtin_plugins.manifest_webhooks.tree import MAX_DEPTH, MAX_MANIFEST_BYTES, MAX_NODES


def refused(data: bytes | str, source: str = "x.yaml") -> Problem:
    with pytest.raises(ManifestError) as caught:
        load_manifest(data.encode() if isinstance(data, str) else data, source)
    (problem,) = caught.value.problems
    assert problem.message and problem.remedy
    return problem


def test_scalars_become_json_types() -> None:
    """Dates, versions, `on` and leading zeros stay text; numbers, booleans and null become values."""
    text = "a: 2026-11-03\nb: 1.0.0\nc: on\nd: 007\ne: 12\nf: -1.5e3\ng: true\n"
    text += "h: ~\ni: 'true'\nj:\nk: 0x1F\nl: 1_000"
    assert load_manifest(text.encode(), "x.yaml") == {
        "a": "2026-11-03",
        "b": "1.0.0",
        "c": "on",
        "d": "007",
        "e": 12,
        "f": -1500.0,
        "g": True,
        "h": None,
        "i": "true",
        "j": None,
        "k": "0x1F",
        "l": "1_000",
    }


def test_json_document_with_surrogate_pair() -> None:
    assert load_manifest(b'{"a": "\\ud83d\\ude00", "b": [1, null]}', "body") == {"a": "😀", "b": [1, None]}


def test_json_with_tabs() -> None:
    """Tab-indented JSON, which YAML would refuse, is accepted."""
    assert load_manifest(b'{\n\t"a": {\n\t\t"b": 1\n\t}\n}', "x.json") == {"a": {"b": 1}}


def test_yaml_flow_style() -> None:
    """A YAML document that begins with a brace but is not JSON is still YAML."""
    assert load_manifest(b"{a: b, c: [d, 1]}", "x.yaml") == {"a": "b", "c": ["d", 1]}


def test_byte_order_mark() -> None:
    """Editors on Windows put a byte order mark before UTF-8; it is not content."""
    assert load_manifest(b"\xef\xbb\xbfa: b", "x.yaml") == {"a": "b"}


def test_small_alias() -> None:
    """An alias is expanded into its own value."""
    found = load_manifest(b"a: &x {k: v}\nb: *x", "x.yaml")
    assert found == {"a": {"k": "v"}, "b": {"k": "v"}}
    assert found["a"] is not found["b"]


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("a: 1\nb: {c: 1, c: 2}", "appears twice", 2),
        ("a: b\n---\nc: d", "more than one document", None),
        ("1: a", "is not text", 1),
        ("? [a]\n: b", "is not plain text", 1),
        ("a: b\ntrue: c", "is not text", 2),
        ("a: .nan", "not JSON", 1),
        ("a: -.inf", "not JSON", 1),
        ("a: 1e999", "too large", 1),
        ("a: 99999999999999999999", "too large", 1),
        ("a:\n  b: !!python/object/apply:os.system [id]", "tag", 2),
        ("a: !!timestamp 2026-11-03", "tag", 1),
        ("a: &x [*x]", "does not refer to an earlier anchor", 1),
        ("a: *nowhere", "does not refer to an earlier anchor", 1),
        ("a: &x {b: c}\nd:\n  <<: *x", "Merge keys", 3),
        ("a: [b", "not YAML", 2),
        ("a: b\n c: d", "not YAML", 2),
        ("", "empty", None),
        ("# only a comment", "empty", None),
        ("- a", "not an object", None),
        ("just text", "not an object", None),
        ("a: \x00", "NUL", None),
        ('a: "\\0"', "NUL", 1),
        ("a: \x07", "not YAML", None),
    ],
)
def test_refused_yaml(text: str, message: str, line: int | None) -> None:
    """Each of these is refused with its reason, and with its line where the parser knows it."""
    problem = refused(text)
    assert message in problem.message
    assert problem.line == line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "appears twice"),
        ('{"a": NaN}', "not JSON"),
        ('{"a": -Infinity}', "not JSON"),
        ('{"a": 1e999}', "too large"),
        ('{"a": ' + "9" * 5000 + "}", "too large"),
        ('{"a": "\\ud800"}', "surrogate"),
        ('{"\\u0000": 1}', "NUL"),
        ("[1]", "not an object"),
        ('{"a": }', "not JSON"),
        ("a: b", "not JSON"),
    ],
)
def test_refused_json(text: str, message: str) -> None:
    """JSON is held to the same bounds as YAML, and a .json file is never read as YAML."""
    assert message in refused(text, "x.json").message


@pytest.mark.parametrize(
    ("text", "line", "remedy"),
    [
        ("a: b\nc: {{ .title }}", 2, "quotes around templates"),
        ("a:\n\tb: c", 2, "no tabs"),
        ("a:\n  b: 1\n  \tc: 2", 3, "no tabs"),
        ("a: b: c\n", 1, "indentation"),
    ],
)
def test_remedies_of_common_mistakes(text: str, line: int, remedy: str) -> None:
    """A template without quotes, and a tab, have remedies of their own."""
    problem = refused(text)
    assert (problem.line, remedy in problem.remedy) == (line, True), problem


def test_path_and_position_of_a_nested_fault() -> None:
    problem = refused("spec:\n  items:\n    - ok\n    - {x: .nan}")
    assert (problem.path, problem.line, problem.column) == ("spec -> items -> 1 -> x", 4, 11)


@pytest.mark.parametrize("data", [b"a: \xff\xfe", "a: b".encode("utf-16"), b"a: b\nc: \xc3\x28"])
def test_not_utf8(data: bytes) -> None:
    """Only UTF-8 is read; no encoding is guessed."""
    assert "UTF-8" in refused(data).message


def test_size_cap_comes_before_parsing() -> None:
    full = b"a: " + b"x" * (MAX_MANIFEST_BYTES - 3)
    assert len(load_manifest(full, "x.yaml")["a"]) == MAX_MANIFEST_BYTES - 3
    assert str(MAX_MANIFEST_BYTES) in refused(full + b"x").message


def test_depth_cap() -> None:
    """The deepest allowed document is read; one level more is refused, in both syntaxes."""
    for source in ("x.yaml", "x.json"):
        fits = '{"a":' * MAX_DEPTH + '"v"' + "}" * MAX_DEPTH
        deeper = '{"a":' * (MAX_DEPTH + 1) + '"v"' + "}" * (MAX_DEPTH + 1)
        assert str(MAX_DEPTH) in refused(deeper, source).message
        if source == "x.json":
            load_manifest(fits.encode(), source)


def test_aliases_cannot_deepen_the_document() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, MAX_DEPTH + 5)]
    assert str(MAX_DEPTH) in refused("\n".join(lines)).message


def test_node_budget() -> None:
    """Many values in few bytes are refused before they are built."""
    assert "values" in refused("a: [" + "1," * MAX_NODES + "]").message
    assert "values" in refused('{"a": [' + "1," * MAX_NODES + "1]}", "x.json").message


HOSTILE = {
    "billion laughs": "a0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol]\n"
    + "\n".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)),
    "long text repeated": "a: &a " + "x" * 100_000 + "\nb: [" + "*a," * 5_000 + "]",
    "brackets": "[" * 250_000,
    "braces": '{"a":' * 50_000,
    "escaped quotes": '{"' + '\\"' * 120_000,
    "quotes": '{"a": ' + '"' * 250_000,
    "dashes": "- " * 120_000,
    "questions": "? " * 120_000,
    "anchors": "a: [" + "&a " * 80_000,
    "colons": "a:" * 120_000,
    "quote of blanks": "a: '" + "\n" * 250_000,
    "deep indent": "\n".join(" " * n + "a:" for n in range(650)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_documents_are_refused_quickly(name: str) -> None:
    started = time.process_time()
    refused(HOSTILE[name])
    assert time.process_time() - started < 1.0


_keys = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
_json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=15,
)


@settings(deadline=None, max_examples=40)
@given(st.dictionaries(_keys, _json_values, max_size=5))
def test_any_json_object_is_read_back(tree: dict[str, Any]) -> None:
    assert load_manifest(json.dumps(tree).encode(), "x.json") == tree


@settings(deadline=None)
@given(
    st.binary(max_size=300) | st.text(alphabet="{}[]:-&*!|>'\"#%@\\\n ,ab1~<", max_size=120).map(str.encode)
)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        found = load_manifest(data, "x.yaml")
    except ManifestError as error:
        assert error.problems
    else:
        assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_reads_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: b", encoding="utf-8")
    assert read_manifest(tmp_path / "a.yaml") == {"a": "b"}


def test_huge_file_is_not_read(tmp_path: Path) -> None:
    """A file of 50 MB (sparse, so reading would give zeros, not an error of size) is refused by its size."""
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(50 * 1024 * 1024)
    with pytest.raises(ManifestError, match=str(50 * 1024 * 1024)):
        read_manifest(path)


def test_link_pipe_folder_and_absence_are_refused(tmp_path: Path) -> None:
    """Only a regular file is read: no link, no folder, nothing missing, and a pipe does not block."""
    (tmp_path / "real.txt").write_text("a: b", encoding="utf-8")
    (tmp_path / "link.yaml").symlink_to(tmp_path / "real.txt")
    (tmp_path / "folder.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    for name in ("link.yaml", "folder.yaml", "pipe.yaml", "absent.yaml"):
        with pytest.raises(ManifestError, match=name):
            read_manifest(tmp_path / name)


def test_link_inside_the_folder_is_read(tmp_path: Path) -> None:
    """With `within`, a link to a file in the same folder is followed, one that leaves it is refused."""
    folder = tmp_path / "manifests"
    (folder / "..data").mkdir(parents=True)
    (folder / "..data" / "a.yaml").write_text("a: b", encoding="utf-8")
    (folder / "a.yaml").symlink_to("..data/a.yaml")
    (tmp_path / "secret.yaml").write_text("s: s", encoding="utf-8")
    (folder / "b.yaml").symlink_to(tmp_path / "secret.yaml")
    assert read_manifest(folder / "a.yaml", within=folder) == {"a": "b"}
    with pytest.raises(ManifestError):
        read_manifest(folder / "b.yaml", within=folder)
