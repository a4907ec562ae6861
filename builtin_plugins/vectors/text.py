"""BM25 over the texts of one collection, with tantivy. Derived from rows, never the only copy.

It stores no texts, only terms and labels, in memory or in a folder. BM25 is tantivy's (Robertson and Zaragoza
2009, k1 = 1.2, b = 0.75).

Texts are indexed as words of every script in a comparable form. English needs nothing here. Other texts are
normalized (NFKC) and case-folded; scripts that are written without spaces become overlapping pairs of
characters; words of other scripts get the Snowball stemmer that their script suggests, Latin words that of
their text's language if it is known; a Latin word with accents counts with and without them. An identifier
counts as a whole as well as by its parts.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import os
import re
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import regex

from builtin_plugins.vectors.common_terms import CommonTerms, bits_of
from builtin_plugins.vectors.fusion import Labels, Ranking, as_labels, is_among
from builtin_plugins.vectors.selections import OfSelections

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")
_UNSPACED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}ー々〆]+"
)
_LATIN = regex.compile(r"\p{Latin}")
_ACCENTED_OR_FOREIGN = regex.compile(r"[^\x00-\x7F\p{P}\p{S}\p{Z}]")
_COMPOUND = re.compile(r"(?<![^\W_])[^\W_]++(?:[_.:/-][^\W_]++)+")  # matched only at the start of words
_INVISIBLE = re.compile("[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]+")
_TELLING = re.compile(r"[\d_]")  # matches CK-381, v4.2 and max_connections, but not well-known
_JOINT = re.compile(r"[_.:/-]")
_MOST_IDENTIFIER = 64

# By the first letter's Unicode name, which begins with its script.
_STEMMERS = {
    "CYRILLIC": "russian",
    "ARABIC": "arabic",
    "DEVANAGARI": "hindi",
    "GREEK": "greek",
    "ARMENIAN": "armenian",
    "TAMIL": "tamil",
}
# Languages of Latin script, by ISO 639 code: only the text's language tells their words from English.
LATIN_STEMMERS = {
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "es": "spanish",
    "eu": "basque",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hu": "hungarian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "nb": "norwegian",
    "nl": "dutch",
    "nn": "norwegian",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "sv": "swedish",
    "tr": "turkish",
}


class InLanguage(NamedTuple):
    """A text and the ISO 639 code of its language; None if that is unknown."""

    text: str
    language: str | None


def known_language(text: InLanguage) -> InLanguage:
    """The text, without its language if that makes no difference to its words."""
    return text if text.language in LATIN_STEMMERS else InLanguage(text.text, None)


class Words:
    """Prepares texts. May be called from any thread: the stemmers, which may not, are used under a lock."""

    def __init__(self) -> None:
        self._stemmers: dict[str, Any] = {}
        self._turn = threading.Lock()

    def prepare(self, text: str, language: str | None = None) -> str:
        """`text` as words that the index splits at spaces and punctuation and compares literally.

        `language` is an ISO 639 code; a question is prepared once for each language of the texts.
        """
        text = text if text.isascii() else _INVISIBLE.sub("", text)  # a soft hyphen would split a word
        stemmer = LATIN_STEMMERS.get(language or "")
        foreign = stemmer or (not text.isascii() and _ACCENTED_OR_FOREIGN.search(text))
        plain = self._folded(text, stemmer) if foreign else text
        return " ".join((plain, *_identifiers(text)))

    def _folded(self, text: str, stemmer: str | None) -> str:
        folded = unicodedata.normalize("NFKC", text).casefold()
        with self._turn:
            return " ".join(term for word in _WORD.findall(folded) for term in self._terms(word, stemmer))

    def _terms(self, word: str, stemmer: str | None) -> Iterator[str]:
        if not (word.isascii() or _LATIN.match(word)):
            yield from self._foreign(word)
            return
        forms = (word,) if word.isascii() else _with_and_without_accents(word)
        for form in forms:
            yield form if stemmer is None else self._by(stemmer, form)

    def _foreign(self, word: str) -> Iterator[str]:
        at = 0
        for run in _UNSPACED.finditer(word):
            if run.start() > at:
                yield self._stemmed(word[at : run.start()])
            yield from _pairs(run[0])
            at = run.end()
        if at < len(word):
            yield self._stemmed(word[at:])

    def _stemmed(self, word: str) -> str:
        language = _STEMMERS.get(unicodedata.name(word[0], "").partition(" ")[0])
        if language is None:
            return word
        return self._by(language, word)

    def _by(self, language: str, word: str) -> str:
        if language not in self._stemmers:
            import Stemmer

            self._stemmers[language] = Stemmer.Stemmer(language)
        stem: str = self._stemmers[language].stemWord(word)
        return stem


def _identifiers(text: str) -> Iterator[str]:
    """Each identifier in one piece: `CK-381` as ck381."""
    if not _TELLING.search(text):
        return
    for identifier in _COMPOUND.findall(text):
        if len(identifier) <= _MOST_IDENTIFIER and _TELLING.search(identifier):
            yield _JOINT.sub("", identifier).casefold()


def _with_and_without_accents(word: str) -> Iterator[str]:
    """The word as written, and as typed on a keyboard without the accents."""
    decomposed = unicodedata.normalize("NFD", word)
    bare = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    bare = bare.translate(_LETTERS)
    yield bare
    if bare != word:
        yield word


_LETTERS = str.maketrans({"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})


def _pairs(run: str) -> Iterator[str]:
    """Overlapping pairs of letters, each with its combining marks; a single letter by itself."""
    letters = regex.findall(r"\p{L}\p{M}*|\p{N}", run)
    if len(letters) < 2:
        yield from letters
    for one, other in pairwise(letters):
        yield one + other


class WeighedTerms(NamedTuple):
    """Weights of terms by BM25, and the score of a text of average length with all of them once."""

    weights: Mapping[str, float]
    full: float


class TermReader:
    """Reads texts and questions as the terms that are compared. May be called from any thread."""

    def __init__(self) -> None:
        self._words = Words()
        self._analyzer = _analyzer(stop=False)
        self._question_analyzer = _analyzer(stop=True)

    def prepared(self, text: InLanguage) -> str:
        """The words of a text, between spaces, for an analyzer that lower-cases and stems English ones."""
        return _split(self._words.prepare(*text))

    def of_text(self, text: InLanguage) -> tuple[list[str], str | None]:
        """The terms of a text in their order, repeated ones included, and the language they depend on."""
        in_language = known_language(text)
        return list(self._analyzer.analyze(self.prepared(in_language))), in_language.language

    def of_question(self, question: str, language: str | None) -> list[str]:
        """The different terms of a question to texts of a language; stop words only if it has no others."""
        words = self.prepared(InLanguage(question, language))
        terms = self._question_analyzer.analyze(words) or self._analyzer.analyze(words)
        return list(dict.fromkeys(terms))

    def weigh(
        self, readings: Sequence[Sequence[str]], containing: Mapping[str, int], total: int
    ) -> WeighedTerms:
        """Weigh a question that is read in several languages; `containing` counts the texts with a term."""
        full = max(
            (_full_score(total, {one: containing[one] for one in terms}) for terms in readings), default=1.0
        )
        return WeighedTerms({term: _idf(total, containing[term]) for term in _rarest(containing)}, full)


_LABEL, _TEXT, _ANALYZER = "label", "text", "platform"
_LONGEST_TOKEN = 256
_LANGUAGE = "english"  # of ASCII words, in Snowball's spelling
# What the words of a text are made of; tantivy's own regular expressions take four times as long.
_BETWEEN = regex.compile(r"(?:[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]|_)+")
_BETWEEN_ASCII = bytes(byte if byte < 128 and chr(byte).isalnum() else 32 for byte in range(256))
_MOST_TERMS = 128  # of a question, the rarest: it may be a whole pasted page
_WRITER_MEMORY = 15_000_000  # tantivy's minimum; a block of this size becomes a segment
_LOADING_MEMORY = 60_000_000
_OWN_PREFIX = "."  # of tantivy's locks and its list of files
_MANAGED = ".managed.json"
_LARGE_FILTER = 1_000
_FEW_LABELS = 250
"""Up to this many labels, a query for each is faster than one for the set: 0.3 against 0.7 ms for sixty."""
_COMMON = 10_000
"""If so many texts have a term, which ones is remembered: to find these takes 4 ms, and 100,000 take 35."""
_SPARE = 4
_LONGER = 4
"""An entry of a list costs about a quarter of a label that is passed."""


class TextIndex:
    """A BM25 index of one collection. All methods may be called from any thread.

    Words of every script are brought into a comparable form (`Words`); English words are lower-cased and
    stemmed, those of a text in another known language stemmed by that language's stemmer. A label is stored
    once: adding it again replaces its text.
    """

    def __init__(self, folder: Path | None = None, parameters: Mapping[str, str] | None = None) -> None:
        """In memory, or in `folder`: empty, or with the files of an index that had these `parameters`.

        Raises OSError or ValueError if the folder can't be written or read.
        """
        self.folder = folder
        self._reader = TermReader()
        self._schema = _schema()
        tantivy = _tantivy()
        self._index = tantivy.Index(self._schema, path=None if folder is None else str(folder))
        self._index.config_reader("manual", 0)
        self._index.register_tokenizer(_ANALYZER, _analyzer(stop=False))
        options = parameters or {}
        self._languages = (None, *options.get("languages", "").split())
        self._writing = threading.Lock()
        self._loading: Any = None
        self._removed = int(options.get("removed", 0))
        self.deleted = int(options.get("deleted", 0))
        self._allowed_bits = OfSelections(bits_of)
        self._common = CommonTerms()

    @property
    def count(self) -> int:
        return int(self._index.searcher().num_docs)

    @property
    def stale(self) -> float:
        """The share of removed texts that may still count in the statistics, 0 to 1.

        They are never returned, and tantivy drops them as it merges; above 0.2 or so, build the index again
        from its rows.
        """
        return self._removed / max(1, self._removed + self.count)

    @property
    def parameters(self) -> dict[str, str]:
        """What the files don't say about the index."""
        languages = " ".join(one for one in self._languages if one is not None)
        return {"languages": languages, "removed": str(self._removed), "deleted": str(self.deleted)}

    def link_to(self, folder: Path) -> None:
        """Link the files of an index that has a folder into another. Raises OSError."""
        assert self.folder is not None, "an index in memory has no files"
        with self._writing:
            for file in self.folder.iterdir():
                if not file.name.startswith(_OWN_PREFIX) or file.name == _MANAGED:
                    os.link(file, folder / file.name)

    def begin_loading(self) -> None:
        """Until `end_loading`, additions to the empty index are only collected, which is faster."""
        self._loading = self._index.writer(_LOADING_MEMORY, 1)

    def end_loading(self) -> None:
        """Make what was added since `begin_loading` searchable."""
        writer, self._loading = self._loading, None
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()

    def add(self, labels: npt.ArrayLike, texts: Sequence[str | InLanguage]) -> None:
        """Index `texts` under `labels` [n], replacing what they had. One large batch is cheaper than many.

        Raises:
            ValueError: the numbers differ, or a label occurs twice.
        """
        ids = as_labels(labels)
        if len(ids) != len(texts):
            raise ValueError(f"{len(ids)} labels for {len(texts)} texts: give each text one label")
        if len(np.unique(ids)) != len(ids):
            raise ValueError("a label occurs twice in one call: give each label one text")
        if len(ids):
            self._write(ids, texts)

    def remove(self, labels: npt.ArrayLike) -> None:
        """Forget `labels`; unknown ones are ignored. `deleted` counts them: files may keep the words."""
        ids = as_labels(labels)
        if len(ids):
            before = self.count
            self._write(ids, ())
            self.deleted += before - self.count

    def search(self, query: str, k: int, allowed: npt.ArrayLike | None = None) -> Ranking:
        """The `k` best texts for the words of `query`, among `allowed` when given, as a `Ranking` by BM25.

        `query` is plain words; no character is an operator. Texts without any of its words are left out.
        """
        return self.bound_search(query)(k, allowed)

    def bound_search(
        self, query: str, within: npt.ArrayLike | None = None
    ) -> Callable[[int, npt.ArrayLike | None], Ranking]:
        """`search` bound to a question, which is parsed only once.

        With `within`, scores are those of an index of these labels alone: other texts don't show in how rare
        a word is. Then a text counts by which of the words it has, as BM25 compares lengths with the average
        of all texts.
        """
        own = None if within is None else as_labels(within)
        common = self._common  # before the searcher, which may be newer
        searcher = self._index.searcher()
        readings = [self._frequencies(query, searcher, language) for language in self._languages]
        containing = {term: count for reading in readings for term, count in reading.items()}
        total = searcher.num_docs
        if own is not None:
            total = len(own)
            containing = {
                one: self._held_within(searcher, one, count, own, common) for one, count in containing.items()
            }
            readings = [{term: containing[term] for term in reading} for reading in readings]
            readings = [one for one in readings if any(one.values())]
        terms = _rarest(containing)
        full = max((_full_score(total, one) for one in readings), default=1.0)
        weights = None if own is None else {term: _idf(total, containing[term]) for term in terms}
        words = self._any_of(terms, weights)

        def search(k: int, allowed: npt.ArrayLike | None) -> Ranking:
            among = None if allowed is None else as_labels(allowed)
            if k <= 0 or not terms or (among is not None and not len(among)):
                return Ranking.empty()
            if among is None:
                return Ranking(*_top(searcher, words, k), full=full)
            return Ranking(*self._filtered(searcher, words, k, among), full=full)

        return search

    def _filtered(
        self, searcher: Any, words: Any, k: int, among: Labels
    ) -> tuple[Labels, npt.NDArray[np.float32]]:
        """Exactly the first `k` of `among`, found by the cheaper of two ways.

        Passing ten thousand labels to tantivy costs 16 ms; if that many are allowed, the first few are
        usually in a somewhat longer unfiltered list, which costs 4 ms. For few of many, it is too long.
        """
        depth = _SPARE * k * max(1, searcher.num_docs // max(1, len(among)))
        if len(among) >= _LARGE_FILTER and depth <= _LONGER * len(among):
            labels, scores = _top(searcher, words, depth)
            is_allowed = is_among(labels, among)
            if is_allowed.sum() >= k or len(labels) < depth:
                return labels[is_allowed][:k], scores[is_allowed][:k]
        return _top(searcher, self._restricted(words, among), k)

    def _in_language(self, text: str | InLanguage) -> InLanguage:
        """The text with its language, None if irrelevant; from now on, questions are read in it, too."""
        in_language = known_language(text if isinstance(text, InLanguage) else InLanguage(text, None))
        if in_language.language is None:
            return in_language
        if in_language.language not in self._languages:
            self._languages = (*self._languages, in_language.language)
        return in_language

    def _frequencies(self, query: str, searcher: Any, language: str | None) -> dict[str, int]:
        """How many texts contain each of the question's terms; stop words count only if it has no others."""
        terms = self._reader.of_question(query, language)
        return {term: searcher.doc_freq(_TEXT, term) for term in terms}

    def _held_within(
        self, searcher: Any, term: str, containing: int, labels: Labels, common: CommonTerms
    ) -> int:
        """How many of these texts contain a term that `containing` texts have in all, by the cheapest way."""
        word, bits = self._term(term), common.get(term)
        if bits is None:
            if len(labels) <= _FEW_LABELS and containing > _LONGER * len(labels):
                return int(searcher.search(self._restricted(word, labels), 1, count=True).count)
            if containing < _COMMON:
                return (
                    int(is_among(_all_labels(searcher, word, containing), labels).sum()) if containing else 0
                )
            bits = common.put(term, bits_of(_all_labels(searcher, word, containing)))
        allowed = self._allowed_bits.get(labels)
        shared = min(len(bits), len(allowed))
        return int(np.bitwise_count(bits[:shared] & allowed[:shared]).sum())

    def _any_of(self, terms: Sequence[str], weights: Mapping[str, float] | None = None) -> Any:
        """Texts with any of these terms, by BM25; with `weights`, by the sum of those of its terms."""
        tantivy = _tantivy()
        words = ((term, self._term(term)) for term in terms)
        return tantivy.Query.boolean_query(
            [
                (
                    tantivy.Occur.Should,
                    word if weights is None else tantivy.Query.const_score_query(word, weights[term]),
                )
                for term, word in words
            ]
        )

    def _term(self, term: str) -> Any:
        return _tantivy().Query.term_query(self._schema, _TEXT, term, "freq")

    def _restricted(self, words: Any, among: Labels) -> Any:
        tantivy = _tantivy()
        unscored = tantivy.Query.const_score_query(self._one_of(among), 0.0)
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, words), (tantivy.Occur.Must, unscored)])

    def _one_of(self, labels: Labels) -> Any:
        tantivy, values = _tantivy(), labels.tolist()
        if len(values) > _FEW_LABELS:
            return tantivy.Query.term_set_query(self._schema, _LABEL, values)
        each = [tantivy.Query.term_query(self._schema, _LABEL, label, "basic") for label in values]
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, one) for one in each])

    def _write(self, replaced: Labels, texts: Sequence[str | InLanguage]) -> None:
        with self._writing:
            if self._loading is not None:
                self._put(self._loading, replaced, texts)
                return
            before = self.count
            # A writer owns threads and memory, and there may be thousands of collections: it lives for one
            # call.
            writer = self._index.writer(_WRITER_MEMORY, 1)
            if before:
                writer.delete_documents_by_query(self._one_of(replaced))
            self._put(writer, replaced, texts)
            writer.commit()
            writer.wait_merging_threads()
            self._index.reload()
            self._common = CommonTerms()
            self._removed += before + len(texts) - self.count

    def _put(self, writer: Any, labels: Labels, texts: Sequence[str | InLanguage]) -> None:
        for label, text in zip(labels.tolist(), texts, strict=False):
            writer.add_document(_document(label, self._reader.prepared(self._in_language(text))))


def _all_labels(searcher: Any, query: Any, count: int) -> Labels:
    """The labels of all texts that a query finds, without scores: ordered by label takes half as long."""
    hits = searcher.search(query, min(count, searcher.num_docs), count=False, order_by_field=_LABEL).hits
    return np.fromiter((label for label, _ in hits), np.int64, len(hits))


def _split(text: str) -> str:
    """A prepared text with nothing but spaces between its words."""
    if text.isascii():
        return text.encode().translate(_BETWEEN_ASCII).decode()
    return str(_BETWEEN.sub(" ", text))


def software() -> str:
    """The versions of all that decides which words an index has of a text, and of its files."""
    packages = [f"{name} {version(name)}" for name in ("tantivy", "regex", "PyStemmer")]
    own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    return ", ".join((*packages, f"Unicode {unicodedata.unidata_version}", f"words {own}"))


def _tantivy() -> Any:
    """tantivy, loaded when first needed."""
    import tantivy

    return tantivy


def _schema() -> Any:
    builder = _tantivy().SchemaBuilder()
    builder.add_integer_field(_LABEL, stored=False, indexed=True, fast=True)
    builder.add_text_field(_TEXT, stored=False, tokenizer_name=_ANALYZER, index_option="freq")
    return builder.build()


def _analyzer(*, stop: bool) -> Any:
    tantivy = _tantivy()
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    filters = [
        tantivy.Filter.remove_long(_LONGEST_TOKEN),
        tantivy.Filter.lowercase(),
        *([tantivy.Filter.stopword(_LANGUAGE)] if stop else []),
        tantivy.Filter.stemmer(_LANGUAGE),
    ]
    for each in filters:
        builder = builder.filter(each)
    return builder.build()


def _document(label: int, text: str) -> Any:
    document = _tantivy().Document()
    document.add_integer(_LABEL, label)
    document.add_text(_TEXT, text)
    return document


def _top(searcher: Any, query: Any, k: int) -> tuple[Labels, npt.NDArray[np.float32]]:
    hits = searcher.search(query, min(k, searcher.num_docs), count=False).hits
    labels = searcher.fast_field_values(_LABEL, [address for _, address in hits])
    return np.array(labels, np.int64), np.array([score for score, _ in hits], np.float32)


def _rarest(frequencies: Mapping[str, int]) -> list[str]:
    terms = [term for term, frequency in frequencies.items() if frequency]
    return heapq.nsmallest(_MOST_TERMS, terms, key=frequencies.__getitem__)


def _full_score(total: int, frequencies: Mapping[str, int]) -> float:
    """The sum of the terms' weights: the score of a text of average length with each of them once."""
    return sum(_idf(total, frequency) for frequency in frequencies.values())


def _idf(total: int, containing: int) -> float:
    among = min(containing, total)  # a removed text may still be counted in `containing`
    return math.log1p((total - among + 0.5) / (among + 0.5))
