"""Names in scripts without capitals: by particles, endings and the change of script.

Han text is cut at its function characters and Japanese where kana begin; Korean words lose their particles.
The rest is usually a noun. Scripts without spaces and without such signs (Thai, Lao, Khmer) only yield quoted
names, Latin words and numbers; a walk finds their shared strings by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import regex

from builtin_plugins.graph_rag.extraction.mentions import NOUN_PHRASE
from builtin_plugins.graph_rag.extraction.spans import TextSpan
from builtin_plugins.graph_rag.extraction.wordlists import word_set

CASELESS: Final = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Arabic}\p{Hebrew}\p{Thai}\p{Devanagari}\p{Lao}\p{Khmer}"
    r"\p{Bengali}\p{Tamil}\p{Telugu}\p{Georgian}\p{Myanmar}]"
)
"""A character of a script without upper and lower case."""

_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_DOTTED = regex.compile(
    r"(?:(?![由和与與在是对])[\p{Han}\p{Katakana}ー]){1,10}(?:[·・‧•][\p{Han}\p{Katakana}ー]{1,10}){1,3}"
)
_KATAKANA = regex.compile(r"[\p{Katakana}ー]{3,20}")
_HAN = regex.compile(r"\p{Han}{2,30}")
_FUNCTION = regex.compile(
    r"[的了是在和与與及或于於为為由从從对對将將把被让讓等也都而且但并並其之以向往到至因所该該此这這那哪谁誰个個名位年月日后後前里裡内內时時曾已又还還就则則即若如年即使]+"
    r"|(?:出生|毕业|畢業|位于|位於|成立|担任|擔任|建立|創立|创立|发行|發行|出版|创作|創作|导演|導演|获得|獲得|一家|一座|一位|一部|著名|主要|包括|他们|他們|我们|我們|因此|以及|没有|沒有|可以|开始|開始|进行|進行|使用|成为|成為)"
)
_JAPANESE_STOP = word_set("年 月 日 者 人 的 後 前 中 時 際 等 事 物")
_HANGUL = regex.compile(r"\p{Hangul}{2,20}")
_PARTICLE = regex.compile(
    r"(?:에서는|에서도|으로부터|에게서|이라는|이라고|라는|에서|에게|으로|까지|부터|처럼|보다|이며|이나|에는|에도|은|는|이|가|을|를|의|에|와|과|도|로|만|인)$"
)
_KOREAN_VERB = regex.compile(
    r"(?:다|했던|하는|하고|하며|하여|해서|된|되어|되는|있는|있던|였던|이었던|한|할|했으며|었으며|였으며|그리고|그러나|그는|그녀는)$"
)
_ENDINGS: Final = {
    "ORG": (
        "大学",
        "大學",
        "公司",
        "银行",
        "銀行",
        "学院",
        "學院",
        "研究所",
        "会社",
        "新聞",
        "政府",
        "委员会",
        "대학교",
        "대학",
        "회사",
        "은행",
    ),
    "GPE": ("市", "省", "县", "縣", "国", "國", "区", "區", "州", "村", "镇", "町", "府", "시", "도", "군"),
    "LOC": ("河", "湖", "岛", "島", "강", "섬"),
    "FAC": (
        "站",
        "駅",
        "桥",
        "橋",
        "寺",
        "宫",
        "宮",
        "城",
        "塔",
        "机场",
        "空港",
        "공항",
        "역",
        "박물관",
        "博物馆",
        "博物館",
        "美術館",
    ),
}
_MOST_HAN = 10


def caseless(text: str) -> Iterator[TextSpan]:
    """Names in Han, kana and Hangul, in the order of the text."""
    spans = [TextSpan(match.start(), match.end(), "PERSON") for match in _DOTTED.finditer(text)]
    japanese = _KANA.search(text) is not None
    if japanese:
        spans += [TextSpan(match.start(), match.end(), NOUN_PHRASE) for match in _KATAKANA.finditer(text)]
    for match in _HAN.finditer(text):
        spans += _of_han(text, match.start(), match.end(), japanese)
    for match in _HANGUL.finditer(text):
        spans += _of_hangul(text, *match.span())
    spans.sort()
    yield from spans


def _of_han(text: str, start: int, end: int, japanese: bool) -> Iterator[TextSpan]:
    cuts = [] if japanese else [match.span() for match in _FUNCTION.finditer(text, start, end)]
    for low, high in zip([start, *(cut[1] for cut in cuts)], [*(cut[0] for cut in cuts), end], strict=True):
        if 2 <= high - low <= _MOST_HAN and not (japanese and text[low:high] in _JAPANESE_STOP):
            yield TextSpan(low, high, _label(text[low:high]))


def _of_hangul(text: str, start: int, end: int) -> Iterator[TextSpan]:
    word = text[start:end]
    if _KOREAN_VERB.search(word):
        return
    bare = _PARTICLE.sub("", word) if len(word) > 2 else word
    if len(bare) >= 2:
        yield TextSpan(start, start + len(bare), _label(bare) if len(bare) > 2 else NOUN_PHRASE)


def _label(word: str) -> str:
    for label, endings in _ENDINGS.items():
        if word.endswith(endings) and len(word) > 2:
            return label
    return NOUN_PHRASE
