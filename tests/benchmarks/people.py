"""Questions that people wrote, with the answers that people wrote: FAQs that Debian's packages carry.

The texts are not ours, so they are read from where they are installed, or from the folder
`PLATFORM_BENCH_DOCS` with the packages unpacked (`dpkg -x`): `debian-faq` in eight languages, `perl-doc`,
`python3.11-doc`. A question is a heading as its authors wrote it; what answers it is the section below, whose
passages do not repeat it. The Perl and Python questions are asked among those languages' manuals.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from builtin_plugins.documents.api import Block, chunk
from tests.benchmarks import faq

LANGUAGES = ("en", "de", "fr", "it", "nl", "ru", "ja", "zh-cn")
_SIZE, _REPEATED = 1500, 150
_LEAST = 80
"""Characters of an answer: "See the next section." answers nothing."""
_MOST_OTHERS = 900
_SECTION = re.compile(r'<h[23] class="title"[^>]*>(.*?)</h[23]>', re.DOTALL)
_TAGS = re.compile(r"<[^>]+>")
_NUMBER = re.compile(r"^[\d.\s]+")
_RST_TITLE = re.compile(r"^([^\n.].*\?)\n[-=~]{4,}$", re.MULTILINE)
_RST_ANY = re.compile(r"^.*\n[-=~*]{4,}$", re.MULTILINE)
_RST_ROLE = re.compile(r":[a-z:]+:`~?([^`<]*?)(?: <[^`>]*>)?`")
_RST_MARK = re.compile(r"^\.\. .*$|``", re.MULTILINE)


@dataclass(frozen=True)
class Faq:
    """Passages, and questions with the places of the passages that answer them."""

    name: str
    language: str
    passages: list[str]
    questions: list[tuple[str, frozenset[int]]]


def faqs() -> Iterator[Faq]:
    root = Path(os.environ.get("PLATFORM_BENCH_DOCS", "/"))
    debian = root / "usr/share/doc/debian/FAQ"
    for language in LANGUAGES:
        place = debian if language == "en" else debian / language
        pages = sorted(place.glob(f"*.{language}.html"))
        if pages:
            sections = [one for page in pages for one in _html_sections(page.read_text(encoding="utf-8"))]
            yield _faq(f"debian {language}", language[:2], sections, [])
    python = root / "usr/share/doc/python3.11/html/_sources"
    texts = [path.read_text(encoding="utf-8") for path in sorted((python / "faq").glob("*.rst.txt"))]
    if texts:
        others = [
            path.read_text(encoding="utf-8") for path in sorted((python / "tutorial").glob("*.rst.txt"))
        ]
        sections = [one for text in texts for one in _rst_sections(text)]
        yield _faq("python", "en", sections, [_rst_plain(text) for text in others])
    for place in sorted((root / "usr/share/perl").glob("*/pod")):
        if (place / "perlfaq4.pod").exists():
            sections = [one for path in sorted(place.glob("perlfaq[1-9].pod")) for one in faq.sections(path)]
            yield _faq(
                "perl", "en", sections, [faq.plain(path) for path in sorted(place.glob("perl[!f]*.pod"))]
            )


def _faq(name: str, language: str, sections: list[tuple[str, str]], others: list[str]) -> Faq:
    passages, questions = list[str](), list[tuple[str, frozenset[int]]]()
    for heading, text in sections:
        parts = _parts(text)
        places = frozenset(range(len(passages), len(passages) + len(parts)))
        passages += parts
        if heading.rstrip("!！").endswith(("?", "？")) and len(text) >= _LEAST:
            questions.append((heading, places))
    rest = [part for text in others for part in _parts(text)]
    return Faq(name, language, passages + rest[:: max(1, len(rest) // _MOST_OTHERS)], questions)


def _parts(text: str) -> list[str]:
    return [one.text for one in chunk([Block(text.strip())], _SIZE, _REPEATED)] if text.strip() else []


def _html_sections(page: str) -> Iterator[tuple[str, str]]:
    heads = list(_SECTION.finditer(page))
    for at, head in enumerate(heads):
        end = heads[at + 1].start() if at + 1 < len(heads) else page.find('<div class="navfooter"')
        yield _NUMBER.sub("", _html_plain(head[1])), _html_plain(page[head.end() : end])


def _html_plain(html: str) -> str:
    import html as entities

    broken = re.sub(r"</(?:p|li|dt|dd|pre|h\d|tr)>", "\0", html)
    text = entities.unescape(_TAGS.sub("", broken))
    text = re.sub(r"(?<=[\u2e80-\uffef])\n(?=[\u2e80-\uffef])", "", text)
    lines = (" ".join(line.split()) for line in text.split("\0"))
    return "\n".join(line for line in lines if line)


def _rst_sections(text: str) -> Iterator[tuple[str, str]]:
    for head in _RST_TITLE.finditer(text):
        after = _RST_ANY.search(text, head.end())
        yield _rst_plain(head[1]), _rst_plain(text[head.end() : after.start() if after else len(text)])


def _rst_plain(text: str) -> str:
    return _RST_MARK.sub("", _RST_ROLE.sub(r"\1", text)).strip()
