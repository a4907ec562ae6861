"""Names that a question is about, by their form, to be looked for: what is said of another company or person
answers nothing.

Only a form that is certain counts, in languages where capitals tell a name. A word of place or time before it
says where or when, not of whom. German writes every noun with a capital: there, a name is in quotation marks,
has a title or a legal form, or is two words after "Wer ist". In Turkish, an apostrophe stands before its
ending: peoples, written without one, are inflected, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from builtin_plugins.rag.answering.words import fold, is_function_word, word_list

_NOT_BEFORE: Final = {
    "en": word_list(
        "a after an and any as at before during each every from her his i in into its my near next on "
        "or our per "
        "since some that the their these this those to under until via with within your"
    ),
    "es": word_list("a al con cada desde durante e el en entre hasta la las lo los mi o su un una y"),
    "fr": word_list(
        "a au aux avec ce cette chaque dans depuis des du en entre et l la le les leur ma mon notre "
        "ou par pendant "
        "pour sa ses son sous sur un une vers votre"
    ),
    "it": word_list(
        "a al alla alle ai con da dal dalla del dei della delle dello di dopo e fra gli i il in l la "
        "le lo nel nella "
        "o ogni per su sul sulla tra un una uno"
    ),
    "nl": word_list(
        "aan bij de deze dit door een elke en het in met na naar of om onder op per te tot uit voor"
    ),
    "pt": word_list(
        "a ao aos as com da das de do dos durante e em entre na nas no nos o os ou para pela pelo por "
        "sua um uma"
    ),
    "ru": word_list("в во до за и из или к ко на о об от перед по под с со у через"),
    "tr": frozenset(),
}
"""Words after which a capitalized word is no subject, by language: "of Tesla", not "in Norway"."""
_FOLLOWS_APOSTROPHE: Final = {"en": re.compile(r"['’](?:s\b)?"), "tr": re.compile(r"['’]")}
_GERMAN_TITLES: Final = word_list("herr herrn frau")
_WHO_IS: Final = re.compile(r"\s*wer (?:ist|war|sind|waren) ", re.IGNORECASE)
_TITLES: Final = word_list(
    "mr mrs ms miss sir madam madame dr prof doktor doctor professor señor señora don doña monsieur "
    "signor signora "
    "mijnheer mevrouw senhor senhora bay bayan " + " ".join(_GERMAN_TITLES)
)
_LEGAL_FORMS: Final = word_list(
    "ab ag as bv co company corp corporation gmbh group inc kg limited llc llp ltd nv oy plc sa sarl "
    "se spa srl"
)
_GERMAN_FORMS: Final = word_list("AG GmbH KG SE mbH OHG")
_CALENDAR: Final = word_list(
    "january february march april may june july august september october november december monday "
    "tuesday wednesday "
    "thursday friday saturday sunday christmas easter"
)
_PEOPLES: Final = re.compile(
    r"(?:ish|ese|ian|ean|german|french|dutch|spaniard|greek|czech|swiss|thai|arab|arabic)s?"
)
"""Peoples and languages in English, which are spoken or described rather than asked about."""
_QUOTED: Final = re.compile(r"[\"“”„«]([^\"“”„«»]{3,60})[\"“”»]")
_WORD: Final = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_JOINS: Final = frozenset([" ", " & ", "'", "’", ". "])
_MOST: Final = 3
"""Names of a question that are looked for."""


class SubjectName(NamedTuple):
    """A name as the question has it, and its words without titles and legal forms."""

    text: str
    words: Sequence[str]


class _Token(NamedTuple):
    text: str
    start: int
    end: int
    begins: bool
    """Whether a sentence begins here."""


def subject_names(question: str, language: str | None) -> list[SubjectName]:
    """The names that a question is about, at most three; none in a language where they can't be told."""
    if language is None or (language not in _NOT_BEFORE and language != "de"):
        return []
    names = dict[str, SubjectName]()
    for text in (
        *_quotations(question),
        *(_in_german(question) if language == "de" else _capital(question, language)),
    ):
        words = [
            one for one in _WORD.findall(text) if fold(one) not in _TITLES | _LEGAL_FORMS and len(one) > 1
        ]
        if words:
            names.setdefault(text, SubjectName(text, words))
    return list(names.values())[:_MOST]


def _quotations(question: str) -> Iterator[str]:
    for quotation in _QUOTED.findall(question):
        words = _WORD.findall(quotation)
        if words and len(words) <= 4 and words[0][0].isupper():
            yield quotation.strip()


def _capital(question: str, language: str) -> Iterator[str]:
    """Runs of capitalized words that are the subject."""
    for run in _runs(question, language):
        first, last = run[0], run[-1]
        before = fold(_last_word(question[: first.start]))
        owner = _FOLLOWS_APOSTROPHE.get(language)
        owns = owner is not None and owner.match(question, last.end) is not None
        if first.begins and len(run) == 1 and not owns:
            continue
        if not owns and (
            language == "tr" or before in _NOT_BEFORE[language] or all(one.text.isupper() for one in run)
        ):
            continue
        yield question[first.start : last.end]


def _in_german(question: str) -> Iterator[str]:
    runs = list(_runs(question, "de"))
    for run in runs:
        words = [one.text for one in run]
        if words[-1] in _GERMAN_FORMS and len(words) > 1:
            yield question[run[0].start : run[-1].end]
        elif fold(words[0]) in _GERMAN_TITLES:
            yield question[run[0].start : run[min(len(run), 3) - 1].end]
    asks = _WHO_IS.match(question)
    if asks is not None and runs and runs[0][0].start == asks.end() and len(runs[0]) > 1:
        yield question[runs[0][0].start : runs[0][-1].end]


def _runs(question: str, language: str) -> Iterator[list[_Token]]:
    """Capitalized words beside each other."""
    run = list[_Token]()
    for token in _tokens(question):
        if not _may_name(token, language):
            yield from [run] if run else []
            run = []
        elif run and question[run[-1].end : token.start] in _JOINS:
            run.append(token)
        else:
            yield from [run] if run else []
            run = [token]
    yield from [run] if run else []


def _tokens(question: str) -> Iterator[_Token]:
    end = 0
    for match in _WORD.finditer(question):
        between = question[end : match.start()]
        begins = end == 0 or any(mark in between for mark in ".!?:¿¡\n")
        yield _Token(match[0], match.start(), match.end(), begins)
        end = match.end()


def _may_name(token: _Token, language: str) -> bool:
    text = token.text
    if not text[0].isupper() or len(text) < 2 or any(char.isdigit() for char in text):
        return False
    folded = fold(text)
    if language == "en" and (folded in _CALENDAR or _PEOPLES.search(folded)):
        return False
    return not is_function_word(text, language) and not is_function_word(text, None)


def _last_word(text: str) -> str:
    words = _WORD.findall(text[-40:])
    return words[-1] if words else ""
