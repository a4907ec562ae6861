"""Values as they are given by people and programs, checked against the fields of a knowledge base."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from builtin_plugins.rag.metadata.fields import FieldDefinition
from builtin_plugins.rag.metadata.kinds import FieldValue, ValueRefused, nfc, value_of
from builtin_plugins.rag.metadata.people import NOBODY, People
from builtin_plugins.rag.services.metadata import Layers
from kernel.sdk import Unprocessable
from kernel.sdk.storage import first_unfit

MOST_FIELDS: Final = 64
MOST_VALUES: Final = 100
_SHOWN: Final = 80


class FieldRefused(Exception):
    """A field that can't be set like this; `why` names the remedy."""

    def __init__(self, name: str, why: str, value: object = None) -> None:
        self.name = name
        self.why = why
        self.value = value
        super().__init__(f"{name}: {why}")

    def within(self, *place: str) -> Unprocessable:
        """The same as an answer (422) about this place of the body."""
        value = self.value if isinstance(self.value, bool | int | float | None) else str(self.value)[:_SHOWN]
        return Unprocessable.field(("body", *place, self.name[:_SHOWN]), self.why, value)


@dataclass(frozen=True)
class GivenValues:
    """Reads values for these fields, in which the accounts of `people` may be named."""

    fields: Mapping[str, FieldDefinition]
    people: People = NOBODY

    def keeping(self, layers: Layers) -> GivenValues:
        """The same for a document whose accounts may stay, also those that the caller doesn't see."""
        persons = [name for name, one in self.fields.items() if one.kind == "person"]
        present = [values for name in persons for _, values in filter(None, [layers.winning(name)])]
        accounts = {int(one.text): "" for values in present for one in values if one.text}
        return replace(self, people=replace(self.people, names={**accounts, **self.people.names}))

    def field(self, name: str) -> FieldDefinition:
        """The field of this name that can be set. Raises FieldRefused."""
        definition = self.fields.get(name)
        if definition is None:
            raise FieldRefused(name, "this knowledge base has no such field; declare it under …/fields first")
        if definition.of_row:
            raise FieldRefused(name, "is known by the server, and can't be set")
        return definition

    def read(self, raw_values: Mapping[str, object]) -> dict[str, tuple[FieldValue, ...]]:
        """The values by field: none for one that was given as null or empty. Raises FieldRefused."""
        if len(raw_values) > MOST_FIELDS:
            raise FieldRefused(
                list(raw_values)[MOST_FIELDS], f"at most {MOST_FIELDS} fields can be set at once"
            )
        return {nfc(name): self.read_field(nfc(name), value) for name, value in raw_values.items()}

    def read_fitting(self, raw_values: Mapping[str, object]) -> dict[str, tuple[FieldValue, ...]]:
        """Those values that the fields can have."""
        values_by_field: dict[str, tuple[FieldValue, ...]] = {}
        for name, value in islice(raw_values.items(), MOST_FIELDS):
            with suppress(FieldRefused):
                values_by_field[nfc(name)] = self.read_field(nfc(name), value)
        return {name: values for name, values in values_by_field.items() if values}

    def read_field(self, name: str, value: object) -> tuple[FieldValue, ...]:
        """The values of one field. Raises FieldRefused."""
        definition = self.field(name)
        if value is None:
            return ()
        if isinstance(value, Sequence) and not isinstance(value, str):
            if not definition.many:
                raise FieldRefused(name, "takes one value, not a list", _short(value))
            if len(value) > MOST_VALUES:
                raise FieldRefused(name, f"takes at most {MOST_VALUES} values", len(value))
            return tuple(dict.fromkeys(self._value(definition, one) for one in value))
        return (self._value(definition, value),)

    def _value(self, definition: FieldDefinition, value: object) -> FieldValue:
        if definition.kind == "person":
            account = self.people.find(value)
            if account is None:
                why = "must be the id or the name of an account that you can see"
                raise FieldRefused(definition.name, why, _short(value))
            value = account
        try:
            return value_of(definition.kind, value)
        except ValueRefused as error:
            raise FieldRefused(definition.name, str(error), _short(value)) from None


def people_in(
    fields: Mapping[str, FieldDefinition], value_sets: Iterable[Mapping[str, object]]
) -> list[object]:
    """What was given for fields of persons, to look up these accounts."""
    persons: list[object] = []
    for name, value in ((nfc(name), value) for one in value_sets for name, value in one.items()):
        definition = fields.get(name)
        if definition is not None and definition.kind == "person":
            several = isinstance(value, Sequence) and not isinstance(value, str)
            persons += list(value)[:MOST_VALUES] if several else [value]  # type: ignore[call-overload]
    return persons


def metadata_in(form: Mapping[str, str], name: str = "metadata") -> dict[str, Any] | None:
    """The JSON object in a field of a form; None without it. Raises Unprocessable."""
    if not form.get(name, "").strip():
        return None
    try:
        data = json.loads(form[name])
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        hint = 'must be a JSON object such as {"tags": ["travel"], "year": 2026}'
        raise Unprocessable.field(("body", name), hint, form[name][:_SHOWN])
    if unfit := first_unfit(data):
        raise Unprocessable.field(("body", name, *unfit[0]), unfit[1])
    return data


def _short(value: object) -> object:
    return value if isinstance(value, bool | int | float | None) else str(value)[:_SHOWN]
