"""Checking a parsed manifest: every defect at once, each with its remedy."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from .manifest import Manifest
from .problems import ManifestError, Problem, join_path, shorten
from .secrets import NEXT
from .templates import malformed_expressions

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

_MAX_PROBLEMS = 50
_MAX_KEY = 100
_TYPE_NAMES = {"object": "an object", "string": "text", "array": "a list", "boolean": "true or false"}
_SECRET_KEY = re.compile(r"secret|token|passw|credential|authorization|api_?-?key", re.IGNORECASE)
_SECRET_TEXT = re.compile(r"whsec_|-----BEGIN|\bgh[opsu]_|\beyJ|(?=[A-Za-z+/_=-]*[0-9])[A-Za-z0-9+/_=-]{32,}")
_SECRET_PATH = ("spec", "trigger", "webhook", "secretRef")
_PROOF_PATH = ("spec", "trigger", "webhook", "proof")
_WEBHOOK_PATH = ("spec", "trigger", "webhook", "path")
_TEXT_PATH = ("spec", "action", "store", "input", "text")


def validate(manifest: Mapping[str, Any], schema: Validator) -> list[Problem]:
    """List all defects of a manifest, at most 50, in the order of their paths; empty when it is valid.

    `schema`: from compile_schema. Paths are the wire format's (section 6.4): keys joined with ` -> `.
    """
    errors = sorted(schema.iter_errors(manifest), key=lambda error: (_keys(error), str(error.validator)))
    problems = [_problem(error) for error in errors]
    paths = {problem.path for problem in problems}
    problems += [problem for problem in _separate_checks(manifest) if problem.path not in paths]
    return _with_lines(dict.fromkeys(problems), manifest)[:_MAX_PROBLEMS]


def check_manifest(manifest: Mapping[str, Any], schema: Validator, source: str) -> Manifest:
    """Return the typed view of a manifest; raises ManifestError with all defects when it is not valid."""
    if problems := validate(manifest, schema):
        raise ManifestError(source, problems)
    return Manifest.model_validate(manifest)


def misspelt_keys(manifest: Mapping[str, Any], schema: Validator) -> list[Problem]:
    """List unknown keys that resemble a known one, such as `secretref`, or belong elsewhere.

    They are accepted, but worth a warning.
    """
    return list(_misspelt(manifest, schema.schema, (), dict(_places(schema.schema, ()))))


def oddities(tree: Mapping[str, Any], manifest: Manifest, schema: Validator) -> list[Problem]:
    """List what is valid, but hardly intended, such as misspelled keys."""
    problems = (
        *misspelt_keys(tree, schema),
        *odd_templates(manifest),
        *_secret_of_another(manifest),
        *_path_with_prefix(manifest),
    )
    return _with_lines(problems, tree)


def _with_lines(problems: Iterable[Problem], manifest: Mapping[str, Any]) -> list[Problem]:
    """The problems with their lines, if the manifest was read from YAML."""
    lines = getattr(manifest, "lines", {})
    return [replace(problem, line=lines.get(problem.path)) for problem in problems]


def _path_with_prefix(manifest: Manifest) -> Iterator[Problem]:
    path = manifest.webhook.path
    if path.startswith("/webhook/"):
        remedy = f"Write {path.removeprefix('/webhook')}, unless you mean that."
        yield Problem(join_path(_WEBHOOK_PATH), f"requests will arrive at /webhook{path}", remedy)


def _secret_of_another(manifest: Manifest) -> Iterator[Problem]:
    name = manifest.webhook.secret_ref or ""
    if name.endswith(NEXT):
        message = f"'{name}' also opens webhooks with the secret '{name.removesuffix(NEXT)}'"
        yield Problem(join_path(_SECRET_PATH), message, f"Choose a name that doesn't end in '{NEXT}'.")


def odd_templates(manifest: Manifest) -> list[Problem]:
    """List malformed template expressions, which would be stored unchanged."""
    source = manifest.store.input
    texts = [(_TEXT_PATH, source.text), *_texts(source.metadata, (*_TEXT_PATH[:-1], "metadata"))]
    return [
        Problem(join_path(keys), f"'{odd}' is not a template expression and is stored unchanged", remedy)
        for keys, text in texts
        for odd, remedy in malformed_expressions(text)
    ][:_MAX_PROBLEMS]


def _texts(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, str):
        yield keys, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, (*keys, str(key)))


def _keys(error: ValidationError) -> tuple[str, ...]:
    return tuple(map(str, error.absolute_path))


def _problem(error: ValidationError) -> Problem:
    message, remedy = _EXPLAIN.get(str(error.validator), _other)(error)
    value = None if error.validator == "required" else _short_value(_keys(error), error.instance)
    return Problem(join_path(_keys(error)), message, remedy, failed_value=value)


def _required(error: ValidationError) -> tuple[str, str]:
    key = _missing_key(error)
    extra = [name for name in error.instance if name not in error.schema.get("properties", {})]
    near = _near(key, extra)
    about = _about(error.schema.get("properties", {}).get(key, {}))
    return (
        f"'{key}' is a required property",
        f"Did you mean '{key}' where it says '{shorten(near)}'?" if near else f"Add {key}. {about}".rstrip(),
    )


def _missing_key(error: ValidationError) -> str:
    """Find the key of a `required` error, which jsonschema names only inside its message."""
    absent = (key for key in error.validator_value if key not in error.instance)
    return next((key for key in absent if error.message.startswith(repr(key))), "")


def _type(error: ValidationError) -> tuple[str, str]:
    type_name = _TYPE_NAMES.get(error.validator_value, str(error.validator_value))
    quoted = error.validator_value == "string" and isinstance(error.instance, (int, float))
    remedy = "Put quotes around the value." if quoted else f"Write {type_name} here."
    return f"must be {type_name}, not {_kind(error.instance)}", f"{remedy} {_about(error.schema)}".rstrip()


def _enum(error: ValidationError) -> tuple[str, str]:
    allowed = [str(value) for value in error.validator_value]
    near = _near(error.instance, allowed) if isinstance(error.instance, str) else None
    if len(allowed) == 1:
        return "is not an allowed value", f"Write {allowed[0]}."
    guess = f" Did you mean {near}?" if near else ""
    return "is not an allowed value", f"Write one of {', '.join(allowed)}.{guess}"


def _pattern(error: ValidationError) -> tuple[str, str]:
    if str(error.instance) == "":
        return "must not be empty", _about(error.schema)
    leading = error.validator_value.startswith("^/") and not str(error.instance).startswith("/")
    message = "must begin with a slash" if leading else "does not have the required form"
    return message, f"Expected: {_about(error.schema)}"


def _length(error: ValidationError) -> tuple[str, str]:
    if str(error.instance) == "":
        return "must not be empty", _about(error.schema)
    edge = "short" if error.validator == "minLength" else "long"
    bound = f"at {'least' if edge == 'short' else 'most'} {error.validator_value}"
    return f"is too {edge}", f"Use {bound} characters. {_about(error.schema)}".rstrip()


def _empty(error: ValidationError) -> tuple[str, str]:
    return "must not be empty", _about(error.schema)


def _other(error: ValidationError) -> tuple[str, str]:
    return f"breaks the rule {error.validator}", _about(error.schema)


_EXPLAIN: dict[str, Callable[[ValidationError], tuple[str, str]]] = {
    "required": _required,
    "type": _type,
    "enum": _enum,
    "pattern": _pattern,
    "minLength": _length,
    "maxLength": _length,
    "minItems": _empty,
    "minProperties": _empty,
}


def _about(schema: Any) -> str:
    return str(schema.get("description", "")) if isinstance(schema, Mapping) else ""


def _kind(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true or false"
    names: dict[type, str] = {dict: "an object", list: "a list", str: "text"}
    return names.get(type(value), "a number")


def _near(word: str, candidates: Sequence[str]) -> str | None:
    """Find the candidate that was probably meant, whatever its case, hyphens and underscores."""
    plain = {_plain(candidate): candidate for candidate in candidates[:1000] if len(candidate) <= _MAX_KEY}
    matches = get_close_matches(_plain(word[:_MAX_KEY]), plain, n=1, cutoff=0.75)
    return plain[matches[0]] if matches else None


def _plain(word: str) -> str:
    return re.sub(r"[-_ ]", "", word).lower()


def _short_value(keys: Sequence[str], value: Any) -> str | None:
    """Return a value as short text, or None for what could be a secret or would repeat a whole object."""
    if isinstance(value, (dict, list)) or any(_SECRET_KEY.search(key) for key in keys):
        return None
    if isinstance(value, str):
        return None if _SECRET_TEXT.search(value[:200]) else shorten(value)
    return shorten(json.dumps(value))


def _separate_checks(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """The checks beyond the schema: a proof is of a secret, and white space alone stores nothing."""
    if _at(manifest, _PROOF_PATH) is not None and _at(manifest, _SECRET_PATH) is None:
        remedy = "Add secretRef, and set the secret: platformctl secret set NAME."
        yield Problem(join_path(_PROOF_PATH), "needs a secret", remedy)
    text = _at(manifest, _TEXT_PATH)
    if isinstance(text, str) and not text.strip():
        yield Problem(
            join_path(_TEXT_PATH), "must not be empty", "Write the text to store, such as {{ .message }}."
        )


def _at(manifest: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = manifest
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _places(schema: Any, keys: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each known key, with the keys of the object that it belongs to."""
    for key, item in schema.get("properties", {}).items():
        yield key, keys
        yield from _places(item, (*keys, key))


def _misspelt(
    value: Any, schema: Any, keys: tuple[str, ...], places: Mapping[str, tuple[str, ...]]
) -> Iterator[Problem]:
    properties = schema.get("properties", {})
    if not isinstance(value, Mapping) or not properties:
        return
    absent = [key for key in properties if key not in value]
    for key, item in value.items():
        if key in properties:
            yield from _misspelt(item, properties[key], (*keys, key), places)
        elif near := _near(key, absent):
            remedy = f"Did you mean '{near}'? As it stands the key is ignored."
            yield Problem(join_path((*keys, key)), f"'{shorten(key)}' is not a known key", remedy)
        elif key in places:
            remedy = f"Move it to {join_path(places[key])}. Here it is ignored."
            yield Problem(join_path((*keys, key)), f"'{key}' is not a known key here", remedy)
