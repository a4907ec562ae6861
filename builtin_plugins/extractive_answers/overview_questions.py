"""How people ask what is in a collection of documents, and the words of the answers: `overviews.yaml`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

OverviewKind = Literal["count", "contents", "changes", "summary"]

_LONGEST: Final = 200
"""Characters of a question that is only about the documents; a longer one says something else, too."""
_SUBJECT: Final = (
    r"(?:(?:the|my|our|this|das|die|den|dem|der|mir|le|la|les|el|los|il|lo|de|het|o|a) |l')?(?P<what>.+?)"
)


class OverviewWords(NamedTuple):
    """The words of an answer in one language, by its kind."""

    number: str
    contents: str
    summary: str
    changes: str
    version: str
    filtered: str


class OverviewQuestion(NamedTuple):
    """What a question about the documents asks for, of which document if of one, and the answer's words."""

    kind: OverviewKind
    words: OverviewWords
    subject: str = ""


class _Pattern(NamedTuple):
    kind: OverviewKind
    words: OverviewWords
    whole: re.Pattern[str]


def overview_question(question: str) -> OverviewQuestion | None:
    """What a question about the documents themselves asks for; None for any other.

    The whole question must be of that kind: "How many documents does a visa need?" is not. Only the
    documents can tell whether the subject of a summary is one of them.
    """
    if len(question) > _LONGEST:
        return None
    text = plain_text(question)
    for pattern in _patterns():
        if (match := pattern.whole.fullmatch(text)) is not None:
            return OverviewQuestion(pattern.kind, pattern.words, match.groupdict().get("what") or "")
    return None


@cache
def _patterns() -> tuple[_Pattern, ...]:
    """Those of all languages; summaries come last, as their subject may be anything."""
    import yaml  # many processes never answer a question

    languages: Mapping[str, Mapping[str, Any]] = yaml.safe_load(
        Path(__file__).with_name("overviews.yaml").read_text("utf-8")
    )
    return tuple(
        _Pattern(kind, OverviewWords(**language["words"]), _compiled(language, question))
        for kind in get_args(OverviewKind)
        for language in languages.values()
        for question in language.get(kind, ())
    )


def _compiled(language: Mapping[str, Any], question: str) -> re.Pattern[str]:
    body = question.replace("{here}", f"(?:{language['here']})?").replace("{what}", _SUBJECT)
    please = language["please"]
    return re.compile(rf"(?:(?:{please})[ ,]*)*(?:{body})(?:[ ,]*(?:{please}))?")


def plain_text(text: str) -> str:
    """A text in lower case, without accents and closing marks."""
    decomposed = unicodedata.normalize("NFKD", text.casefold().replace("ı", "i").replace("’", "'"))
    bare = "".join(char for char in decomposed if not unicodedata.combining(char))
    return " ".join(unicodedata.normalize("NFC", bare).split()).strip(" ?!.。;¿¡")
