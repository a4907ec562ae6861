"""The grammar of filters, in the shape of OpenAI's attribute filters, and a short form of it.

`{"type": "eq", "key": "year", "value": 2026}`, combined by `and`, `or` (`filters`) and `not` (`filter`);
`{"year": 2026, "tags": ["a", "b"]}` is short for `and` of `eq` and `in`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    RootModel,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

DEEPEST: Final = 8
MOST_CONDITIONS: Final = 64
MOST_VALUES: Final = 500
MOST_IN_ALL: Final = 1_000
"""Values of a whole filter: databases allow some ten thousand parameters, and take long for as many."""
LONGEST_VALUE: Final = 512

FilterValue: TypeAlias = (
    StrictBool
    | Annotated[StrictInt, Field(ge=-(2**53), le=2**53)]
    | Annotated[StrictFloat, Field(allow_inf_nan=False, ge=-(2.0**53), le=2.0**53)]
    | Annotated[StrictStr, StringConstraints(max_length=LONGEST_VALUE)]
)
FilterValues: TypeAlias = Annotated[list[FilterValue], Field(max_length=MOST_VALUES)]
FilterKey: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Operator = Literal[
    "eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains", "starts_with", "ends_with", "exists"
]
_LISTS: Final = ("in", "nin")


class FieldCondition(BaseModel):
    """A condition on one field. Of several values, one that matches is enough."""

    model_config = ConfigDict(extra="forbid")

    type: Operator
    key: FilterKey = Field(description="The name of the field.")
    value: FilterValue | FilterValues | None = Field(
        None,
        description="A list for `in` and `nin`; for `exists`, true, which is the default, or false. Dates "
        "are ISO 8601 (`2026-03-01`, `2026-03`, `2026`) or relative: `now-30d`, `today-1y`.",
    )

    @model_validator(mode="after")
    def _value_fits(self) -> FieldCondition:
        value = self.value
        if self.type == "exists":
            if value is not None and not isinstance(value, bool):
                raise ValueError("'exists' takes true or false as its value")
        elif self.type in _LISTS:
            if not isinstance(value, list):
                raise ValueError(f"'{self.type}' takes a list of values")
        elif value is None or isinstance(value, list):
            raise ValueError(f"'{self.type}' takes one value; for several, use 'in' or 'nin'")
        return self


class FilterGroup(BaseModel):
    """Filters of which all (`and`) or one (`or`) must match."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["and", "or"]
    filters: list[FilterNode] = Field(min_length=1, max_length=MOST_CONDITIONS)


class FilterNegation(BaseModel):
    """Matches the documents that the filter does not, also those without the field."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["not"]
    filter: FilterNode


class FieldValues(RootModel[dict[FilterKey, FilterValue | FilterValues | None]]):
    """The short form: for each field a value, or a list of which one must match; all must hold."""


_ALTERNATIVES: Final = ("bool", "constrained-", "list[")
_NO_VALUE: Final = (
    f"must be a text of at most {LONGEST_VALUE} characters, a number, true or false, or a list of at most "
    f"{MOST_VALUES} of them"
)
_TAGS: Final = ("‹condition›", "‹group›", "‹not›", "‹short›")


def _form_of(node: Any) -> str:
    kind = node.get("type") if isinstance(node, Mapping) else getattr(node, "type", None)
    if isinstance(node, FieldValues) or not isinstance(node, Mapping | BaseModel):
        return "‹short›"
    if kind in ("and", "or") and _has(node, "filters"):
        return "‹group›"
    if kind == "not" and _has(node, "filter"):
        return "‹not›"
    return "‹condition›" if isinstance(kind, str) and _has(node, "key") else "‹short›"


def _has(node: Any, name: str) -> bool:
    return name in node if isinstance(node, Mapping) else hasattr(node, name)


FilterNode: TypeAlias = Annotated[
    Annotated[FieldCondition, Tag("‹condition›")]
    | Annotated[FilterGroup, Tag("‹group›")]
    | Annotated[FilterNegation, Tag("‹not›")]
    | Annotated[FieldValues, Tag("‹short›")],
    Discriminator(_form_of),
]


def _check_size(data: Any) -> Any:
    """Refuse what is too deep or too much before it is read."""
    levels, conditions, values = [data], 0, 0
    for depth in range(1, DEEPEST + 2):
        if depth > DEEPEST:
            raise ValueError(f"a filter may have at most {DEEPEST} levels")
        inner: list[Any] = []
        for node in levels:
            form = _form_of(node)
            if form == "‹group›" and isinstance(node, Mapping):
                inner += node["filters"] if isinstance(node["filters"], list) else []
            elif form == "‹not›" and isinstance(node, Mapping):
                inner.append(node["filter"])
            else:
                sent = node if form == "‹short›" else {"": node.get("value")}
                sent = sent if isinstance(sent, Mapping) else {"": None}
                conditions += len(sent)
                values += sum(len(each) if isinstance(each, list) else 1 for each in sent.values())
        if conditions + len(inner) > MOST_CONDITIONS:
            raise ValueError(f"a filter may have at most {MOST_CONDITIONS} conditions")
        if values > MOST_IN_ALL:
            raise ValueError(f"a filter may have at most {MOST_IN_ALL:,} values in all")
        if not inner:
            return data
        levels = inner
    return data


def _with_plain_places(data: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Name the place of a problem as it is in the filter that was sent."""
    try:
        return validate(data)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
        places = dict(_place_and_message(one["loc"], one["msg"]) for one in problems)
        raise ValidationError.from_exception_data(
            error.title,
            [
                InitErrorDetails(
                    type=PydanticCustomError("value_error", "{message}", {"message": message}),
                    loc=loc,
                    input=data,
                )
                for loc, message in places.items()
            ],
        ) from None


def _place_and_message(loc: tuple[int | str, ...], message: str) -> tuple[tuple[int | str, ...], str]:
    """Without pydantic's names of alternatives; of a value that is none of them, one problem is enough."""
    plain = tuple(part for part in loc if part not in _TAGS)
    for at, part in enumerate(plain):
        if isinstance(part, str) and part.startswith(_ALTERNATIVES):
            return plain[:at], _NO_VALUE
    return plain, message


class MetadataFilter(RootModel[FilterNode]):
    """A filter on the fields of documents; see the documentation of filters."""


FilterGroup.model_rebuild()
FilterNegation.model_rebuild()
MetadataFilter.model_rebuild()


def _or_none(whole: MetadataFilter) -> MetadataFilter | None:
    """None for a short form that sets nothing."""
    node = whole.root
    return None if isinstance(node, FieldValues) and all(v is None for v in node.root.values()) else whole


SentFilter: TypeAlias = Annotated[
    MetadataFilter,
    WrapValidator(_with_plain_places),
    BeforeValidator(_check_size),
    AfterValidator(_or_none),
]
"""A filter as clients send it."""


def filter_as_sent(metadata_filter: MetadataFilter) -> Any:
    """The filter as it was sent, without what was not set."""
    return metadata_filter.model_dump(mode="json", exclude_unset=True, exclude_none=True)
