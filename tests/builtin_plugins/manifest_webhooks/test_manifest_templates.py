"""Templates: dot-paths, errors, text forms, bounds and linear time."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builtin_plugins.manifest_webhooks.templates import (
    TemplateError,
    compile_template,
    malformed_expressions,
    render_metadata,
)

PAYLOAD: dict[str, Any] = {
    "a": {"b": "deep", "n": None, "list": [{"x": 1}], "şehir": "İzmir", "_u1": "u"},
    "t": "text",
    "yes": True,
    "no": False,
    "i": 7,
    "f": 1.5,
    "empty": "",
    "o": {"k": "ü", "l": [1, None]},
    "rows": [["a", "b"], ["c"]],
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ .t }}", "text"),
        ("{{.t}}", "text"),
        ("{{   .a.b\t}}", "deep"),
        ("x{{ .t }}y{{ .i }}z", "xtexty7z"),
        ("{{ .yes }} {{ .no }} {{ .f }}", "true false 1.5"),
        ("{{ .o }}", '{"k":"ü","l":[1,null]}'),
        ("{{ .a.list }}", '[{"x":1}]'),
        ("{{ .empty }}", ""),
        ("{{ .a.list[0].x }}{{ .o.l[0] }}", "11"),
        ("{{ .rows[1][0] }}", "c"),
        ("{{ .a.şehir }}{{ .a._u1 }}", "İzmiru"),
        ("{{{ .t }}}", "{text}"),
        ("{{ {{ .t }} }}", "{{ text }}"),
        ("no template", "no template"),
    ],
)
def test_rendering(template: str, expected: str) -> None:
    """Placeholders are replaced by the text of their value."""
    assert compile_template(template).render(PAYLOAD) == expected


@pytest.mark.parametrize(
    "literal",
    [
        "{{ t }}",
        "{{ . }}",
        "{{ .t-x }}",
        "{{ .t | upper }}",
        "{ { .t } }",
        "{{ .t }",
        "{{ .t() }}",
        "{% .t %}",
        "${t}",
        "{{ .a .b }}",
        "{{}}",
        "{{ '.t' }}",
        "\\1 \\g<0> %s {0}",
    ],
)
def test_everything_else_is_literal(literal: str) -> None:
    assert compile_template(literal).render(PAYLOAD) == literal


@pytest.mark.parametrize(
    ("template", "odd", "remedy"),
    [
        ("{{ t }}", "{{ t }}", "{{ .t }}"),
        ("{{a.b}} {{ .t }}", "{{a.b}}", "{{ .a.b }}"),
        ("{{- .t -}}", "{{- .t -}}", "{{ .t }}"),
        ("{{ $.a.b }}", "{{ $.a.b }}", "{{ .a.b }}"),
        ("{{ .t | upper }}", "{{ .t | upper }}", "no filters"),
        ("{{ .a[-1] }}", "{{ .a[-1] }}", "no filters"),
        ("{{ a[0].b }}", "{{ a[0].b }}", "{{ .a[0].b }}"),
        ("{{ .user-agent }}", "{{ .user-agent }}", "digits and _"),
        ("Hello {{ .t", "{{ .t", "Close it"),
    ],
)
def test_malformed_expressions(template: str, odd: str, remedy: str) -> None:
    """What was meant as a placeholder is found, with what to write instead."""
    ((found, told),) = malformed_expressions(template)
    assert found == odd and remedy in told


def test_sound_templates_are_not_odd() -> None:
    assert malformed_expressions("{{ .t }} {{.a.b}} {x} {{{ .t }}} }} ${t}") == []


@pytest.mark.parametrize(
    ("template", "path", "reason"),
    [
        ("{{ .missing }}", ".missing", ".missing is missing"),
        ("{{ .a.x.y }}", ".a.x.y", ".a.x is missing"),
        ("{{ .a.n }}", ".a.n", "null"),
        ("{{ .a.n.x }}", ".a.n.x", ".a.n is null"),
        ("{{ .a.list.0 }}", ".a.list.0", ".a.list is a list"),
        ("{{ .t.upper }}", ".t.upper", ".t is text"),
        ("{{ .i.real }}", ".i.real", "not an object"),
        ("{{ .t.__class__ }}", ".t.__class__", ".t is text"),
        ("{{ .a.keys }}", ".a.keys", "missing"),
        ("{{ .a..b }}", ".a..b", "missing"),
        ("{{ .a. }}", ".a.", "missing"),
    ],
)
def test_errors_name_the_path(template: str, path: str, reason: str) -> None:
    """An error says where the path ends; attributes and indexes do not exist."""
    with pytest.raises(TemplateError) as caught:
        compile_template(template).render(PAYLOAD)
    assert caught.value.path == path
    assert reason in caught.value.reason


def test_rendered_values_are_not_rendered_again() -> None:
    assert compile_template("{{ .a }}").render({"a": "{{ .b }}", "b": "secret"}) == "{{ .b }}"


@pytest.mark.parametrize("value", ["a\x00b", "\ud800", {"k": "\udfff"}])
def test_unstorable_text_is_an_error(value: Any) -> None:
    with pytest.raises(TemplateError, match=r"\.v"):
        compile_template("{{ .v }}").render({"v": value})


def test_output_is_bounded() -> None:
    """Repeating a long value stops at the bound instead of filling the memory."""
    template = compile_template("{{ .t }}" * 10_000)
    with pytest.raises(TemplateError, match="longer than 1000 characters"):
        template.render({"t": "x" * 100}, max_chars=1000)
    assert len(compile_template("{{ .t }}" * 10).render({"t": "x" * 100}, max_chars=1000)) == 1000
    with pytest.raises(TemplateError):
        compile_template("literal").render({}, max_chars=3)


def test_metadata() -> None:
    """Texts and nested maps are rendered; keys, numbers, lists and null are kept."""
    mapping = {
        "a": "{{ .t }}!",
        "in": {"b": "{{ .i }}", "c": {"d": "x"}},
        "n": 1,
        "l": ["{{ .t }}"],
        "z": None,
        "q": True,
    }
    assert render_metadata(mapping, PAYLOAD) == {
        "a": "text!",
        "in": {"b": "7", "c": {"d": "x"}},
        "n": 1,
        "l": ["{{ .t }}"],
        "z": None,
        "q": True,
    }


def test_metadata_is_bounded_as_a_whole() -> None:
    mapping = {"a": "{{ .t }}", "in": {"b": "{{ .t }}"}, "c": "{{ .t }}"}
    assert render_metadata(mapping, {"t": "x" * 10}, max_chars=30)["c"] == "x" * 10
    with pytest.raises(TemplateError):
        render_metadata(mapping, {"t": "x" * 10}, max_chars=29)


HOSTILE = [
    "{{ " * 80_000,
    "{{" + " " * 250_000,
    "{" * 250_000,
    "{{ ." + "a" * 250_000,
    "{{ ." + "a." * 120_000 + " }",
    "{{ .a" + " " * 250_000 + "}",
    "{{ .a" * 50_000,
    "{{ .a }}" * 30_000,
]


@settings(deadline=None)
@given(st.text(alphabet="{} .ab_1\n", max_size=60))
def test_compilation_loses_nothing(text: str) -> None:
    """Literals and paths alternate, and every literal stands in the source."""
    template = compile_template(text)
    assert len(template.literals) == len(template.paths) + 1
    assert all(literal in text for literal in template.literals)
    if not template.paths:
        assert template.render({}) == text


_names = st.from_regex(r"[A-Za-z0-9_]{1,8}", fullmatch=True)
_values = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
    | st.integers()
    | st.booleans()
)


@settings(deadline=None)
@given(st.lists(_names, min_size=1, max_size=5), _values, st.text(alphabet=" \t\n", max_size=3))
def test_any_path_finds_its_value(names: list[str], value: Any, space: str) -> None:
    payload: Any = value
    for name in reversed(names):
        payload = {name: payload}
    expected = value if isinstance(value, str) else json.dumps(value)
    assert compile_template("{{" + space + "." + ".".join(names) + space + "}}").render(payload) == expected
