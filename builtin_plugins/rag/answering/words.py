"""Words as answering compares them: folded, without function words, stemmed; names and numbers apart.

Stop words are those of a text's language if known, from `stopwordsiso` but for English; else those of a few
common languages. Text in scripts without spaces is split into pairs of letters.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cache, lru_cache
from itertools import pairwise, repeat
from typing import Any, NamedTuple

_WORD = re.compile(r"[A-Za-z0-9]++(?:[.,:'][A-Za-z0-9]++)*+")
"""A word in ASCII text; spelling out the characters halves the time."""

_OTHER_SCRIPTS = ("ar", "bg", "el", "fa", "he", "hi", "ja", "ko", "ru", "th", "uk", "zh")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_LEAST_FOREIGN = 3
_LEAST_SHARED = 5
"""The minimum of letters that two different forms of a word share at their beginning."""
_LEAST_PART = 5
_LEAST_REST = 3
"""The minimum of letters of a word within a compound, and of the rest: shorter ones match by chance."""
_LEAST_END, _LEAST_BEFORE = 4, 6
"""The same for the end of a long compound, its main part: Milbe (whose stem is `milb`) and Varroamilbe."""
_MONTH = "May"
_POSSESSIVE = re.compile(r"['’]")
_DIGIT = re.compile(r"\d")
_AMOUNT = re.compile(
    r"(?:aud|brl|cad|chf|cny|czk|dkk|eur|gbp|huf|inr|jpy|krw|mxn|nok|nzd|pln|ron|rub|sek|sgd|thb|tl|try|uah|usd"
    r"|vnd|zar|am|ca|fy|nr|no|pm|q)\d[\d.,]*",
    re.IGNORECASE,
)
"""Amounts, times and years, which name nothing."""


def word_list(text: str) -> frozenset[str]:
    """The words of a space-separated list."""
    return frozenset(text.split())


_ENGLISH = word_list(
    """
    a able about across after all almost also am among an and any are as at be because been but by called can
    cannot could d dear did do does during each either else ever every explain for from get give got had
    happen happens has have he her here hers him his how however i if in into is it its just least let like
    likely long made make makes many may me might more most much must my need neither no nor not of off often
    on only or other our own please rather s said same say says she should show since so some such summarise
    summarize t take takes tell than that the their them then there these they this those through tis to too
    twas under until up us use used very want wants was we were what when where which while who whom whose why
    will with would yet you your
    """
)
"""English function and question words, and parts of contractions. The list of `stopwordsiso` includes content
words: computer, fire, first."""
_COMMON = ("de", "es", "fr", "tr")
"""Languages of Latin script whose function words count as such in a text of unknown language."""


def fold(text: str) -> str:
    """Lower case without accents, the Turkish dotted and dotless i alike."""
    if text.isascii():
        return text.lower()
    lowered = text.replace("İ", "i").replace("ı", "i").casefold()
    return "".join(char for char in unicodedata.normalize("NFKD", lowered) if not unicodedata.combining(char))


INVISIBLE = frozenset(
    chr(code)
    for codes in (
        (0xAD, 0x61C, 0x200B, 0x200E, 0x200F, 0xFEFF),
        *(range(0x202A, 0x202F), range(0x2060, 0x2065), range(0x2066, 0x206A)),
    )
    for code in codes
)
"""Zero-width characters: soft hyphens, word breaks, direction marks. Joiners are not among them, as they
change how Persian, Indian scripts and emoji look."""
_UNSEEN = re.compile(f"[{''.join(sorted(INVISIBLE))}]+")


def visible(text: str) -> str:
    """The text without invisible characters, which would split words."""
    return text if text.isascii() else _UNSEEN.sub("", text)


def words(text: str) -> list[str]:
    """The words of a text as written; overlapping pairs of letters where a script leaves no spaces."""
    if text.isascii():
        return _WORD.findall(text)
    scripts = _scripts()
    return [piece for word in scripts.word.findall(visible(text)) for piece in _pieces(scripts, word)]


class _Scripts(NamedTuple):
    """Words, runs of letters without spaces, and letters with their marks, in any script."""

    word: Any
    unspaced: Any
    letter: Any


@cache
def _scripts() -> _Scripts:
    """Compiled for the first text that isn't ASCII, as few processes need the library at their start."""
    import regex

    unspaced = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー々〆]+"
    return _Scripts(
        regex.compile(r"[\p{L}\p{M}\p{N}]+(?:[.,:'’][\p{L}\p{M}\p{N}]+)*"),
        regex.compile(unspaced),
        regex.compile(r"\p{L}\p{M}*|\p{N}"),
    )


def _pieces(scripts: _Scripts, word: str) -> Iterable[str]:
    if not scripts.unspaced.search(word):
        return (word,)
    pieces: list[str] = []
    at = 0
    for run in scripts.unspaced.finditer(word):
        letters = scripts.letter.findall(run[0])
        pieces += [word[at : run.start()]] if run.start() > at else []
        pieces += [one + other for one, other in pairwise(letters)] if len(letters) > 1 else letters
        at = run.end()
    return [*pieces, word[at:]] if at < len(word) else pieces


@cache
def _stop_words(language: str | None) -> frozenset[str]:
    """Function words of a language, folded; without one, of a few common languages and other scripts."""
    from stopwordsiso import has_lang, stopwords

    if language == "en":
        return _ENGLISH
    if language is None:
        others = {fold(word) for word in stopwords(_OTHER_SCRIPTS)}
        common = {fold(word) for word in stopwords(_COMMON)}
        stop_words = _ENGLISH | common | {word for word in others if not word.isascii()}
    else:
        is_supported = has_lang(language)
        stop_words = frozenset(fold(word) for word in stopwords(language)) if is_supported else _ENGLISH
    return frozenset(word for word in stop_words if not has_number(word))


def is_function_word(word: str, language: str | None) -> bool:
    """Whether the word is a function word in a language, as far as known."""
    stop_words, folded = _stop_words(language), fold(word)
    return folded in stop_words or (
        len(word) == 2 and not word.isascii() and all(one in stop_words for one in folded)
    )


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """The folded word without a possessive, by its English root; numbers stay as they are."""
    plain = _POSSESSIVE.split(fold(word), maxsplit=1)[0]
    if has_number(plain):
        return plain.replace(",", "") if _NUMBER.fullmatch(plain) else plain
    return _root(plain, "en")


def count_words(text: str) -> int:
    """The number of words; in scripts without spaces, two letters count as one, and five of Thai."""
    if text.isascii():  # true for most texts; checking every letter takes ten times as long
        return len(text.split())
    return sum(max(1, round(sum(map(_share_of_word, word)))) for word in text.split())


def _share_of_word(letter: str) -> float:
    if letter > "\u2e7f":
        return 0.5
    return 0.2 if "\u0e00" <= letter <= "\u0eff" else 0.0


def content_stems(text: str, language: str | None = None) -> list[str]:
    """Stems of content words in a language, in order, each once."""
    return list(dict.fromkeys(stem(word) for word in content_words(text, language)))


@lru_cache(maxsize=16_384)
def _content_stem(word: str, language: str | None) -> str:
    """The stem of a content word, empty for others; "May" is a month."""
    is_month = word == _MONTH and language in ("en", None)
    return stem(word) if is_month or not is_function_word(word, language) else ""


@lru_cache(maxsize=16_384)
def _root(word: str, language: str) -> str:
    """The folded root of a word, by the Snowball stemmer of its language; empty without one."""
    import Stemmer

    try:
        stemmer = Stemmer.Stemmer(language, 0)
    except KeyError:
        return ""
    return fold(stemmer.stemWord(word.replace("İ", "i").lower()))


def forms(word: str, languages: Collection[str]) -> set[str]:
    """The forms to compare a word by in texts of these languages: its stem, and its root in each."""
    roots = {_root(word, language) for language in languages} if word.isalpha() else set[str]()
    return {stem(word), *roots} - {""}


@lru_cache(maxsize=65_536)  # called for every sentence of five passages
def forms_in(word: str, language: str | None) -> frozenset[str]:
    """The same for texts of one language."""
    return frozenset(forms(word, [] if language is None else [language]))


def content_words(text: str, language: str | None = None) -> list[str]:
    """The content words in a language, as written, in order, each once."""
    text_words = words(text)
    if text_words[:1] == [_MONTH] and len(text_words) > 1 and not has_number(text_words[1]):
        text_words = text_words[1:]  # "May I …?"
    return list({key: word for word in text_words if (key := _content_stem(word, language))}.values())


def content_forms(text: str, language: str | None) -> frozenset[str]:
    """The forms of a text's content words, for comparison with texts of its language.

    The forms of `content_words`, without a Python loop: this runs for every sentence that is read.
    """
    return frozenset().union(*dict(map(_stem_and_forms, words(text), repeat(language))).values())


@lru_cache(maxsize=65_536)
def _stem_and_forms(word: str, language: str | None) -> tuple[str, frozenset[str]]:
    """The stem of a content word, and its forms; empty for others."""
    content_stem = _content_stem(word, language or "en")
    return content_stem, forms_in(word, language) if content_stem else frozenset()


@lru_cache(maxsize=65_536)
def same_word(one: str, other: str) -> bool:
    """Whether two stems are forms of one word: equal, or long and one is (but for a letter) a prefix of the
    other.

    Suffixing languages (Turkish, German compounds) need prefixes; short words would match too much.
    """
    if one == other:
        return True
    if has_number(one) or has_number(other):
        return False
    shared = _shared_prefix(one, other)
    short, long = sorted((len(one), len(other)))
    if not one.isascii():  # suffixes that were not removed: озеро and озера, основал and основана
        return len(one) > 2 and shared >= max(_LEAST_FOREIGN, short - 2) and shared >= 0.6 * long
    return shared >= _LEAST_SHARED and shared >= short - 1 and shared >= 0.5 * long


def found_in(word: str, stems: Collection[str]) -> bool:
    """Whether a form of ``word`` is among the stems, alone or in a compound, or one of them in it."""
    return word in stems or any(True for _ in meant_by(word, stems))


def meant_by(word: str, stems: Iterable[str]) -> Iterator[str]:
    """The stems that may mean ``word``."""
    least = _LEAST_SHARED if word.isascii() else _LEAST_FOREIGN
    head = word[:least]
    for other in stems:
        inflected = other.startswith(head) and len(word) >= least and same_word(word, other)
        if inflected or other == word or ((word in other or other in word) and _in_compound(word, other)):
            yield other


class Stems:
    """Many stems, indexed to find those that may mean a word without checking each."""

    def __init__(self, stems: Iterable[str]) -> None:
        self._begin, self._end = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for known_stem in stems:
            self._begin[known_stem[:_LEAST_FOREIGN]].append(known_stem)
            self._end[known_stem[-_LEAST_END:]].append(known_stem)

    def meant_by(self, word: str) -> frozenset[str]:
        """Like the function `meant_by`, but only checks stems with the same beginning or end."""
        begin, end = self._begin.get(word[:_LEAST_FOREIGN], ()), self._end.get(word[-_LEAST_END:], ())
        return frozenset(meant_by(word, (*begin, *end)))


def _in_compound(one: str, other: str) -> bool:
    """Whether one is the beginning or end of the other: Arbeiter and Bauarbeiter, Glühbrand and Brand."""
    short, long = (one, other) if len(one) < len(other) else (other, one)
    if has_number(short):
        return False
    rest = len(long) - len(short)
    if long.endswith(short) and len(short) >= _LEAST_END and rest >= _LEAST_BEFORE:
        return True
    alike = long.endswith(short) or long.startswith(short)
    return alike and len(short) >= _LEAST_PART and rest >= _LEAST_REST


def named_terms(question: str) -> set[str]:
    """Stems of what a question names exactly: capitalized words past its start, acronyms, codes and numbers.

    Capitals don't count as names if most words have one (titles, German nouns).
    """
    tokens = words(question)
    capital = [token for token in tokens[1:] if token[0].isupper()] + _possessive(tokens[:1])
    titled = len(capital) > 0.5 * max(len(tokens) - 1, 2)
    names = {token for token in capital if not titled and _AMOUNT.fullmatch(token) is None}
    exact = {token for token in tokens if _is_code(token)}
    return {stem(token) for token in names | exact if not is_function_word(token, None)}


def spells_out(text: str, acronym: str) -> bool:
    """Whether consecutive words begin with the letters of ``acronym`` (folded): its long form.

    Two letters need capitalized words, as they may match by chance.
    """
    if not acronym.isalpha() or not 2 <= len(acronym) <= 6:
        return False
    letters, text = (acronym.upper(), text) if len(acronym) == 2 else (acronym, fold(text))
    between = r"[^\W\d_]*[\W\d_]+"
    return re.search(r"(?<![^\W\d_])" + between.join(letters), text) is not None


@lru_cache(maxsize=65_536)
def has_number(text: str) -> bool:
    """Whether the text contains a number in digits."""
    return _DIGIT.search(text) is not None


def _possessive(first: list[str]) -> list[str]:
    """Whether a question's first word is a name by its ending: Northwind's, Japonya'nın; not What's."""
    no_names = _ENGLISH | {"l", "qu"}
    return [word for word in first if re.search(r"\w['’]\w", word) and stem(word) not in no_names]


def _is_code(token: str) -> bool:
    """Whether it is a number, article code or acronym; not the likes of Q3, which have too many spellings."""
    if any(char.isdigit() for char in token):
        return token.isdigit() or (len(token) > 2 and _AMOUNT.fullmatch(token) is None)
    return len(token) > 1 and token.isupper()


def _shared_prefix(one: str, other: str) -> int:
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return at
    return min(len(one), len(other))


_SPACE_BESIDE_WORDS = re.compile(r"(?<!\d) | (?!\d)")


def bare_text(text: str) -> str:
    """A text without marks of quotes (``>``), and without white space except between digits: copies differ
    in these.
    """
    return _SPACE_BESIDE_WORDS.sub("", " ".join(text.replace(">", " ").split()))
