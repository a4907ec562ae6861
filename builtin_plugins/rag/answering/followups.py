"""Completes follow-up questions without a model: what they leave out is taken from earlier questions.

Deterministic, and only from questions, so that quotes in an answer can't get into a later question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce

from builtin_plugins.rag.answering.words import content_stems, fold, is_function_word, word_list, words

_OPENING = re.compile(
    r"(?:(?:and|but|or|so|then|und|oder|aber|et|ou|mais|y|o|pero|ve|peki)\b[\s,]*)?"
    r"(?:(?:what|how)\s+about\b|(?:what|how)\s+is\s+it\b|(?:wie|was)\s+ist\s+(?:es\s+)?mit\b|qu['’]en\s+est-il\s+(?:de|du)\b"
    r"|qué\s+hay\s+de\b|the\s+same\b)?\s*",
    re.IGNORECASE,
)
_BACKWARDS = word_list(
    "it its they them their theirs this that these those he him his she her hers there then former latter "
    "same er ihn ihm sie ihnen dessen deren dies diese dieser dieses dort damit dafür davon daran "
    "il elle ils elles lui leur leurs cela ça ceci celui celle y en ello eso esto esa ese esos esas allí"
)
_ELLIPSIS = 4  # words or fewer are no complete question, unless one is a question word
_ASKING = word_list(
    "who whom whose what which when where why how is are was were do does did can could may must should will "
    "would has have wer wie was wann wo warum welche welcher welches ist sind kann darf muss hat haben "
    "qui que quoi quel quelle quand où pourquoi comment est peut doit quién qué cuándo dónde cuál cómo "
    "es puede"
)
_MOST_SUBJECT = 6


def make_whole(question: str, before: Sequence[str]) -> str:
    """The question with the subject of earlier ones (oldest first); unchanged if it needs none."""
    if not before:
        return question
    subject = reduce(lambda last, one: _completed(one, last), before[1:], before[0])
    return _completed(question, subject)


def needs_subject(question: str) -> bool:
    """Whether a question leaves out its subject: by its opening, a back-reference, or being a fragment."""
    return bool(_opening(question)) or _points_back(question) or _is_ellipsis(question)


def _completed(question: str, last: str) -> str:
    if not needs_subject(question):
        return question
    rest = _without_opening(question)
    if _points_back(rest) or not _is_ellipsis(rest):
        return _with_subject(rest, last)
    return _swapped(rest, last) or _with_subject(rest, last)


def _without_opening(question: str) -> str:
    rest = question.strip()[len(_opening(question)) :].strip()
    return rest if words(rest) else question


def _opening(question: str) -> str:
    """Its opening, if that refers to something before."""
    match = _OPENING.match(question.strip())
    text = match.group() if match else ""
    return text if text.strip() else ""


def _points_back(question: str) -> bool:
    return any(fold(word) in _BACKWARDS for word in words(question))


def _is_ellipsis(question: str) -> bool:
    folded_words = [fold(word) for word in words(question)]
    return len(folded_words) <= _ELLIPSIS and not any(word in _ASKING for word in folded_words)


def _swapped(rest: str, last: str) -> str | None:
    """The last question with its own "in Oslo" replaced by "in Bergen"; None if it has none."""
    first, _, value = rest.rstrip(" ?!.").partition(" ")
    if not is_function_word(first, None) or not value:
        return None
    tokens = last.rstrip(" ?!.").split(" ")
    for at, token in enumerate(tokens[:-1]):
        if fold(token) == fold(first):
            end = at + 2
            while end < len(tokens) and tokens[end][:1].isupper():
                end += 1
            return " ".join([*tokens[: at + 1], value, *tokens[end:]]) + "?"
    return " ".join([*tokens, first, value]) + "?"


def _with_subject(question: str, last: str) -> str:
    """The question, with the words of the last one that it lacks."""
    question_stems = set(content_stems(question))
    lacking = [
        word
        for word in words(last)
        if (stems := content_stems(word)) and not question_stems.intersection(stems)
    ]
    if not lacking:
        return question
    subject = " ".join(list(dict.fromkeys(lacking))[:_MOST_SUBJECT])
    return f"{question.rstrip(' ?!.')} ({subject})?"
