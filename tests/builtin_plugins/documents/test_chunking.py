"""Chunks are exact slices of the parsed text, cover it, and end at sensible places."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builtin_plugins.documents.blocks import Block, parsed_text
from builtin_plugins.documents.chunking import Chunk, chunk, page_at
from tests.builtin_plugins.documents.sample_documents import prose

FRAGMENTS = st.sampled_from(
    [
        *("\n\n", "\n", " ", "  ", "\t", ". ", "? ", "。", "a", "word", "x" * 40, "# Title", "Title"),
        *("é", "👩‍👩‍👧", "\u3000", "A sentence of words. ", "\n" * 30, " " * 50, "end.\n\nHeading\n\nText"),
    ]
)
TEXTS = st.one_of(st.lists(FRAGMENTS, max_size=60).map("".join), st.text(max_size=200))
BLOCKS = st.lists(
    st.builds(Block, TEXTS, st.one_of(st.none(), st.integers(1, 4)), headings=st.just(())), max_size=12
)
WORDS = st.lists(st.text("abcdef", min_size=1, max_size=8), min_size=30, max_size=300)


@st.composite
def sizes(draw: st.DrawFn) -> tuple[int, int]:
    """A size and a smaller overlap, small ones mostly: that is where the corners are."""
    size = draw(st.one_of(st.integers(1, 12), st.integers(13, 200), st.integers(201, 8_192)))
    return size, draw(st.one_of(st.just(0), st.just(size - 1), st.integers(0, size - 1)))


def page_of(blocks: list[Block], position: int) -> int | None:
    end = 0
    for block in blocks:
        end += len(block.text)
        if position < end:
            return block.page
        end += 2
    raise AssertionError("position beyond the text")


@settings(max_examples=200, deadline=None)
@given(blocks=BLOCKS, size_and_overlap=sizes())
def test_invariants(blocks: list[Block], size_and_overlap: tuple[int, int]) -> None:
    """Slices are exact, bounded, trimmed, in order, on their page; nothing visible is lost."""
    size, overlap = size_and_overlap
    text = parsed_text(blocks)
    chunks = list(chunk(blocks, size, overlap))
    covered = 0
    for number, found in enumerate(chunks):
        assert found.index == number
        assert found.text == text[found.char_start : found.char_end]
        assert 1 <= len(found.text) <= size
        assert found.text == found.text.strip()
        pages = [(0, found.page), *found.pages]
        assert [start for start, _ in pages] == sorted({start for start, _ in pages})
        for place in (at for at, char in enumerate(found.text) if not char.isspace()):
            assert page_at(place, found.page, found.pages) == page_of(blocks, found.char_start + place)
        assert not text[covered : found.char_start].strip()
        assert found.char_end > covered
        covered = found.char_end
    assert not text[covered:].strip()
    for before, after in pairwise(chunks):
        assert before.char_start < after.char_start
        assert after.char_start >= before.char_end - overlap


@settings(max_examples=200, deadline=None)
@given(blocks=BLOCKS, size_and_overlap=sizes(), data=st.data())
def test_blocks_of_one_page_may_be_split_or_joined(
    blocks: list[Block], size_and_overlap: tuple[int, int], data: st.DataObject
) -> None:
    """Only the text and its pages count, not how a parser cut it into blocks; and twice gives the same."""
    size, overlap = size_and_overlap
    resplit: list[Block] = []
    for block in blocks:
        if resplit and resplit[-1].page == block.page and data.draw(st.booleans()):
            resplit[-1] = Block(resplit[-1].text + "\n\n" + block.text, block.page)
        else:
            resplit.append(block)
    assert list(chunk(blocks, size, overlap)) == list(chunk(resplit, size, overlap))


@settings(max_examples=200, deadline=None)
@given(words=WORDS, overlap=st.integers(8, 40))
def test_words_stay_whole(words: list[str], overlap: int) -> None:
    text = " ".join(words)
    chunks = list(chunk([Block(text)], 80, overlap))
    for before, after in pairwise(chunks):
        assert text[after.char_start - 1] == " " and text[before.char_end] == " "
        assert after.char_start < before.char_end


def texts(source: str, size: int, overlap: int = 0) -> list[str]:
    return [found.text for found in chunk([Block(source)], size, overlap)]


def test_short_text_is_one_chunk() -> None:
    assert list(chunk([Block("one\n\ntwo")], 512, 50)) == [Chunk(0, "one\n\ntwo", None, 0, 8)]


def test_no_text_no_chunks() -> None:
    assert list(chunk([], 10, 0)) == list(chunk([Block(""), Block(" \n")], 10, 0)) == []


def test_separators_in_order() -> None:
    """A blank line is better than a line, that than a sentence, that than a word, that than nothing."""
    rest = " and so on" * 5
    assert texts("first one here\n\nsecond. a\nb cc dd" + rest, 28)[0] == "first one here"
    assert texts("first one here\nsecond one. a b cc dd" + rest, 28)[0] == "first one here"
    assert texts("first one here! second one a b cc dd" + rest, 28)[0] == "first one here!"
    assert texts("first one here second one a b cc dd" + rest, 28)[0] == "first one here second one a"
    assert texts("x" * 70, 28) == ["x" * 28, "x" * 28, "x" * 14]
    assert texts("火が好き。水も好き。木も好き。", 8)[0] == "火が好き。"


SCRIPTS = {
    "hi": "यह पुस्तकालय सोमवार से शुक्रवार तक खुला रहता है। ",
    "ur": "یہ کتب خانہ پیر سے جمعہ تک کھلا رہتا ہے۔ ",
    "am": "ቤተ መጻሕፍቱ ከሰኞ እስከ ዓርብ ክፍት ነው። ",
    "hy": "Գրադարանը բաց է երկուշաբթիից ուրբաթ։ ",
    "zh": "管理员说：“图书馆周一至周五开放。”",
    "ja": "司書は「図書館は月曜日から金曜日まで開いています。」",
}


@pytest.mark.parametrize("sentence", SCRIPTS.values(), ids=SCRIPTS)
def test_sentences_end_in_every_script(sentence: str) -> None:
    whole = sentence.strip()
    found = texts(sentence * 40, 10 * len(sentence), 3 * len(sentence))
    assert len(found) > 4
    for text in found:
        assert text.startswith(whole) and text.endswith(whole)


def test_separator_early_in_the_chunk_does_not_make_a_crumb() -> None:
    source = "Intro\n\n" + " ".join(prose(3))
    assert texts(source, 120)[0] == "Intro\n\n" + prose(1)[0]


def test_overlap_begins_with_a_sentence_or_a_word() -> None:
    """A sentence that fits the overlap is repeated whole, else whole words, else what a hard cut left."""
    source = "One two three four. Five six seven. Eight nine ten eleven twelve thirteen fourteen."
    first, second, *_ = texts(source, 40, 20)
    assert first.endswith("Five six seven.") and second.startswith("Five six seven. Eight")
    first, second, *_ = texts("alpha beta gamma delta epsilon zeta eta theta iota kappa", 24, 9)
    assert (first, second) == ("alpha beta gamma delta", "delta epsilon zeta eta")
    assert texts("0123456789abcdefghij", 10, 4) == ["0123456789", "6789abcdef", "cdefghij"]


def test_rows_of_a_table_are_not_repeated_and_indented_lines_are() -> None:
    """Tabs between cells make a row; tabs before a line of code do not, nor tabs in the lines above."""
    row = "pump 4\t11 kg\t40 EUR"
    first, second, *_ = texts(f"{row}\n\n{'word ' * 10}", 28, 20)
    assert first == row and second.startswith("word")
    for above in ("a := 1", "a\tb\tc"):
        code = f"{above}\n\tfirst(one, two)\n\tsecond(three, four)\n\tthird(five, six)"
        first, second, *_ = texts(code, 28, 20)
        assert first.endswith("\tfirst(one, two)") and second.startswith("first(one, two)\n\tsecond")


def test_heading_goes_with_its_text() -> None:
    """A heading that would end a chunk moves to the next one, Markdown or plain, with its parents."""
    body = " ".join(prose(2))
    for heading in ("Second part", "# One\n\n## Second part"):
        found = texts(f"{body}\n\n{heading}\n\n{body}", len(body) + len(heading) + 4)
        assert found[0] == body and found[1].startswith(f"{heading}\n\nThe quick")
    lines = texts(f"{body}\n## Next\n{body}", len(body) + 10)
    assert lines[0] == body and lines[1].startswith("## Next\n")


def test_list_items_are_no_headings() -> None:
    body = " ".join(prose(2))
    for item in ("- a point", "It ends."):
        assert texts(f"{body}\n\n{item}\n\n{body}", len(body) + 14)[0] == f"{body}\n\n{item}"


def test_pages_are_not_crossed_when_they_have_enough_text() -> None:
    pages = [Block(" ".join(prose(12, 100 * number)), number) for number in range(1, 6)]
    text = parsed_text(pages)
    chunks = list(chunk(pages, 400, 80))
    assert {found.page for found in chunks} == {1, 2, 3, 4, 5}
    for found in chunks:
        assert "\n\n" not in found.text
    for before, after in pairwise(chunks):
        assert (before.page == after.page) == (after.char_start < before.char_end)
    assert text.startswith(chunks[0].text)


def test_tiny_pages_share_a_chunk() -> None:
    chunks = list(chunk([Block(f"Slide {number}", number) for number in range(1, 41)], 120, 10))
    assert chunks[0].text == "Slide 1\n\nSlide 2\n\nSlide 3\n\nSlide 4"
    assert [found.page for found in chunks[:3]] == [1, 5, 9]
    assert chunks[0].pages == ((9, 2), (18, 3), (27, 4))


def test_last_chunk_of_a_page_is_no_crumb() -> None:
    """A page a little longer than a chunk is shared out, not followed by a few letters of its end."""
    pages = [Block("word " * 105, 1), Block("other " * 100, 2)]
    chunks = list(chunk(pages, 512, 0))
    assert [found.page for found in chunks] == [1, 1, 2, 2]
    assert min(len(found.text) for found in chunks) >= 512 // 4 - 6


def test_pathological_white_space_is_passed_over() -> None:
    found = list(chunk([Block("a" + "\n" * 1_000_000 + "b")], 8_192, 8_191))
    assert [(c.text, c.char_start) for c in found] == [("a", 0), ("b", 1_000_001)]


def test_memory_is_bounded() -> None:
    """Thirty million characters of blocks are cut in a few hundred kilobytes."""

    def stream() -> Iterator[Block]:
        page = " ".join(prose(35))
        for number in range(10_000):
            yield Block(page, number + 1)

    tracemalloc.start()
    try:
        count = sum(1 for _ in chunk(stream(), 2_000, 100))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count >= 20_000
    assert peak < 2_000_000


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (8_193, 0), (10, 10), (10, -1), (-5, 0)])
def test_impossible_sizes_are_refused_at_the_call(size: int, overlap: int) -> None:
    """The error comes with the call and names the numbers, not when the first chunk is asked for."""
    with pytest.raises(ValueError, match=r"chunk (size|overlap) must be"):
        chunk([], size, overlap)
