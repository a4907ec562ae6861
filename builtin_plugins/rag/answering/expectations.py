"""What kind of answer a question asks for, and whether a text has anything of that kind.

Sentences without a number can't answer "How many volts does it have?", however near their topic is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from functools import cache, lru_cache

from builtin_plugins.rag.answering.words import (
    content_stems,
    fold,
    has_number,
    is_function_word,
    same_word,
    stem,
    word_list,
    words,
)


class Expected(Enum):
    """The kinds that can be distinguished without a model."""

    ANYTHING = "anything"
    NUMBER = "number"
    TIME = "time"
    NAME = "name"
    MONEY = "money"


_NUMBER = re.compile(
    r"\b(how (many|much|long|old|often|large|big|tall|high|fast|far|deep|heavy|wide)|what (price|percentage)"
    r"|wie (viele?|lange|oft|hoch|gross|alt|tief|weit|breit)|wieviele?|combien|cuant[oa]s?|kac|ne kadar"
    r"|сколько|насколько|какова (?:длина|высота|глубина)|bao nhieu|bao xa)\b"
    r"|كم |कितन[ेीा]|多[少长大深高远]|几[个位天年条次]|กี่|เท่าไร"
)
_COUNTED = re.compile(
    r"\b(how many|wie ?viele?|combien|cuant[oa]s|quant[ei]|kac|сколько|bao nhieu)\b"
    r"|كم عدد|कितन[ेी]|多少|几[个位条次]|กี่"
)
_COMPARED = re.compile(
    r"\b(most|least|highest|lowest|largest|smallest|biggest|longest|shortest|oldest|newest|youngest|cheapest"
    r"|latest|earliest|best|worst|tallest|heaviest|lightest|fastest|slowest|deepest|widest|strongest|warmest"
    r"|hottest|coldest|richest|more than|fewer than|less than|average|total|sum of|in all|altogether"
    r"|compared?|difference|meisten|wenigsten|(?:hoch|niedrig|gross|klein|teuer|billig|alt|neu|jung|lang|kurz"
    r"|schwer|leicht|schnell|langsam|tief|breit|stark|warm|heiss|kalt|dick|reich)s?e?ste[nrsm]?"
    r"|insgesamt|durchschnittlich|im schnitt|mehr als|weniger als|summe|mas|menos|mayor|menor"
    r"|promedio|plus|moins|moyenne|en (?:cok|az|yuksek|dusuk|buyuk|kucuk|pahali|ucuz|uzun|kisa)|toplam"
    r"|ortalama|всего|сам\w+|наи\w+|средн\w+)\b|最|总共|一共|平均|ที่สุด"
)
_DEGREES = word_list(
    """
    more less fewer better worse taller higher lower larger smaller bigger longer shorter older younger
    newer cheaper faster slower heavier lighter earlier later sooner warmer colder deeper wider richer
    stronger closer nearer further farther hotter busier mehr weniger besser schlechter grosser kleiner
    hoher tiefer langer kurzer alter junger neuer teurer billiger gunstiger schneller langsamer schwerer
    leichter fruher spater kalter breiter plus moins meilleur meilleure mas menos mejor peor mayor menor
    daha больше меньше лучше хуже выше ниже дороже дешевле раньше позже длиннее короче моложе старше
    тяжелее легче быстрее
    """
)
_THAN = re.compile(
    rf"\b({'|'.join(sorted(_DEGREES))})\b(?: [\w-]+){{0,4}},? (?:than |als |que |qu['’]|чем )"
    r"|\b(?!other|rather)(\w+) than |(?<=[dt][ae]n )(daha)\b"
)
"""What compares two things: "longer than", "Pilatus'tan daha"."""
_OR = re.compile(rf"(?<=\w )(?:or|oder|ou|o|u|yoksa|veya|или) (?!(?:{'|'.join(sorted(_DEGREES))})\b)")
"""Between two things; not as in "five or more"."""
_CONDITION = re.compile(r" (?:if|wenn|falls|sobald|если) ")
_CHINESE_THAN = re.compile(
    r"(比)[^，。？]{2,12}?(?:[更还還多少高低大小长長短早晚贵貴快慢重轻輕远遠近好强強老]|便宜)"
)
_TIME = re.compile(
    r"\b(when|(what|which) (time|year|date|day|month)|wann|quand|cuando|ne zaman|hangi yil|en que ano"
    r"|welche[mns]? (?:jahr|tag|datum)|когда|каком году|khi nao|nam nao)\b"
    r"|متى|اي (?:سنة|عام)|कब|किस (?:वर्ष|साल)|哪一?年|什么时候|何时|ปีใด"
)
_MONEY = re.compile(
    r"\b(price|costs?|fee|fare|toll|salary|bonus|rent|dividend|kostet|kosten|preis|gebuhr|fiyat\w*"
    r"|ucret\w*|prix|precio)\b"
)
_CURRENCY = re.compile(
    r"[$€£¥₺₹]|\b(eur|usd|gbp|chf|tl|try|euros?|dollars?|pounds?|francs?|lira|cents?|free|charge|kostenlos|gratis"
    r"|gratuit|ucretsiz|bedava)\b|\d ?%"
)
_NAME = re.compile(
    r"\bwho(?:m)? (is|was|were|are|wrote|won|made|built|led|did|\w+ed) |\bwho\w* \w+ed\b|\bwhose\b"
    r"|\b(wer|wem|wen|wessen|quien|qui|кто|кого|кем|чье\w*|kim\w{0,3})\b|谁|哪位|ใคร|किसने|किसके"
)
_WHOLE_NAME = re.compile(
    r"\b[^\W\d_a-zß-öø-ÿ][\w'’-]*\.?(?: (?:v[ao]n|de[rsln]?|di|da|du|le|la))* [^\W\d_a-zß-öø-ÿ][\w'’-]+"
)
_YEAR = re.compile(r"\b\d{3,4}\b|\d:\d\d|\d\d?\. ?[^\W\d_]|[年月日]")
_ASKS = re.compile(r"(how much|what|was |wie (viel|hoch|teuer)|ne kadar|kac|combien|quel|cuant)")
_MARKED = re.compile(r"[\u0900-\u0eff]")  # Indic scripts, Thai and Lao
_OFTEN = word_list(
    """
    one half once twice daily weekly monthly yearly annual annually none never always every each einmal
    zweimal jede jeden nie
    """
)
_SPELT = ("en", "de", "es", "fr", "it", "pt", "tr", "ru")
"""Languages whose numbers and dates in words we know."""
_COUNTS = (0, *range(2, 100))  # one is an article in most
_LARGE = (100, 1000, 1_000_000)
_INDEFINITE = word_list("a an ein eine einen einem einer un une una bir")
_NONE = word_list("no kein keine keinen aucun aucune ningun ninguna nessun nessuna nenhum nenhuma hic")
# Ten and a thousand in Turkish, two and six in Italian; "bin" is also "am" in German.
_OTHER_WORDS = word_list("on bin due sei")
_IDEOGRAPHS = re.compile(r"[二两兩三四五六七八九十百千万萬]|一[个個位名天年月次条條种種家所]")
_RELATIVE = word_list(
    "today tomorrow yesterday daily before after until during once when weekend week month year quarter"
)


@lru_cache(maxsize=256)  # called for every sentence of five passages
def expected(question: str) -> Expected:
    """The kind of answer that a question asks for."""
    folded = _asked(question)
    if _TIME.search(folded):
        return Expected.TIME
    if _MONEY.search(folded) and _ASKS.match(folded):
        return Expected.MONEY
    if _NUMBER.search(folded):
        return Expected.NUMBER
    return Expected.NAME if _NAME.search(folded) else Expected.ANYTHING


def _asked(question: str) -> str:
    """The question, folded if marks are accents: in Hindi and Thai they distinguish words."""
    return question.casefold() if _MARKED.search(question) else fold(question)


def needs_reckoning(question: str) -> bool:
    """Whether answering the question from rows requires counting or comparing them."""
    folded = _asked(question)
    return bool(_COUNTED.search(folded) or _COMPARED.search(folded))


def counted(question: str) -> str | None:
    """The stem of what the question counts: orders in "How many orders were cancelled?"."""
    found = _COUNTED.search(folded := _asked(question))
    return next(iter(content_stems(folded[found.end() :])), None) if found else None


def states_count(question: str, text: str, of: str) -> bool:
    """Whether the text states a number of the thing that the question counts.

    Before the thing, there must be a number, or a word that is not in the question: "12 new orders", "a dozen
    clubs". A number after it is a name: "order 1001". Without the thing, any number suffices, except a time
    of day.
    """
    tokens = words(text)
    asked = {stem(word) for word in words(question)}
    things = [at for at, token in enumerate(tokens) if same_word(stem(token), of)]
    for at in things:
        before = tokens[max(0, at - 2) : at]
        if any(map(_is_numeral, before)) or (before and _is_news(before[-1], asked)):
            return True
    named = any(has_number(token) for at in things for token in tokens[at + 1 : at + 2])
    return not named and any(_is_numeral(token) and ":" not in token for token in tokens)


def _is_numeral(word: str) -> bool:
    if has_number(word) or _IDEOGRAPHS.search(word) is not None:
        return True
    return (folded := fold(word)) in _numerals() or folded in _NONE


@cache
def _numerals() -> frozenset[str]:
    """Numbers in words, folded, without those that are different words in another language."""
    from num2words import num2words

    made = {fold(num2words(number, lang=language)) for language in _SPELT for number in _COUNTS}
    for language in _SPELT:  # "one hundred", "einhundert", "birmilyon": "one" may be omitted
        large = [fold(num2words(number, lang=language)).split()[-1] for number in _LARGE]
        made.update(large, (word.removeprefix("ein").removeprefix("bir") for word in large))
    return frozenset(made) - _OTHER_WORDS


@cache
def _times() -> frozenset[str]:
    """Months, weekdays and times of day, folded."""
    from babel.core import Locale

    made = set(_RELATIVE)
    for language in _SPELT:
        locale = Locale(language)
        made.update(name for names in (locale.months, locale.days) for name in _wide(names))
        said = words(" ".join(_wide(locale.day_periods)))
        made.update(word for word in said if len(word) > 2 and not is_function_word(word, language))
    return frozenset(fold(word) for word in made if word.isalpha())


def _wide(styles: Mapping[str, Mapping[str, Mapping[object, str]]]) -> Iterator[str]:
    """The names in full, alone and within a sentence."""
    for style in styles.values():
        yield from style.get("wide", {}).values()


def _is_news(word: str, asked: Collection[str]) -> bool:
    return stem(word) not in asked and not is_function_word(word, None)


def superlative(question: str) -> str | None:
    """The word by which a question asks for an extreme of many, or for their total."""
    found = _COMPARED.search(_asked(question))
    return found[0] if found else None


def comparative(question: str) -> str | None:
    """The word by which a question compares two things."""
    folded = _CONDITION.split(fold(question))[0]
    found = _THAN.search(folded)
    if found and not _is_measure(folded[found.end() :]):
        return found[found.lastindex or 0]
    if found := _CHINESE_THAN.search(question):
        return found[1]
    return next((word for word in words(folded) if word in _DEGREES), None) if _OR.search(folded) else None


def _is_measure(text: str) -> bool:
    """Whether something is compared with a measure rather than a particular thing: "10 km", "a year"."""
    first = next(iter(words(text)), "")
    return has_number(first) or first in _INDEFINITE or first in _numerals()


def has_value(text: str) -> bool:
    """Whether the text has something that can be compared: a number or a time."""
    tokens = words(text)
    return any(map(has_number, tokens)) or _has_any(text, _numerals() | _OFTEN | _times())


def fits(question: str, text: str) -> int:
    """1 if the text has the kind of thing that the question asks for, -1 if not, 0 for any kind.

    Also 0 for a single capital, a weak sign of a name, since every noun has one in some languages.
    """
    kind = expected(question)
    if kind is Expected.ANYTHING:
        return 0
    if kind is Expected.NAME and text.lower() != text.upper() and offers(question, text):
        return int(_has_whole_name(question, text))
    return 1 if offers(question, text) else -1


def offers(question: str, text: str) -> bool:
    """Whether the text has something of the kind that the question asks for; true if any kind will do."""
    kind = expected(question)
    if kind is Expected.NUMBER:
        numeral = _IDEOGRAPHS.search(text) is not None
        return numeral or _has_new_number(question, text) or _has_any(text, _numerals() | _OFTEN)
    if kind is Expected.TIME:
        dated = _YEAR.search(text) is not None and _has_new_number(question, text)
        return dated or _has_any(text, _times())
    if kind is Expected.MONEY:
        return _CURRENCY.search(fold(text)) is not None
    return kind is Expected.ANYTHING or _has_new_name(question, text)


def _has_any(text: str, wanted: frozenset[str]) -> bool:
    return any(fold(word) in wanted for word in words(text))


def _has_new_number(question: str, text: str) -> bool:
    asked = set(content_stems(question))
    return any(has_number(word) and stem(word) not in asked for word in words(text))


def _has_whole_name(question: str, text: str) -> bool:
    """Two adjacent capitalized words, neither a function word, that aren't both in the question."""
    asked = set(content_stems(question))
    pairs = (words(found[0]) for found in _WHOLE_NAME.finditer(text))
    return any(
        content_stems(pair[0]) and content_stems(pair[-1]) and not {stem(pair[0]), stem(pair[-1])} <= asked
        for pair in pairs
        if pair
    )


def _has_new_name(question: str, text: str) -> bool:
    """Whether a capitalized word past the start isn't in the question; true for scripts without capitals."""
    asked = set(content_stems(question))
    if text.lower() == text.upper():  # a script without capitals
        return True
    tokens = words(text)
    capital = [token[0].isupper() and stem(token) not in asked for token in tokens]
    return any(capital[1:])
