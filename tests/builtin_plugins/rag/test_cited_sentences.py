"""Where in a document the sentences are that an answer quotes, or cites a passage for."""

from __future__ import annotations

import pytest

from builtin_plugins.rag.answering.cited_sentences import sentences_cited, span_of_quote
from builtin_plugins.rag.answering.sentences import split_sentences
from builtin_plugins.rag.passages import Passage

LIST = (
    "# Card\n\nA lost card costs 7 EUR. It is sent\nby mail.\n\n"
    "- Members borrow twelve books.\n- Guests read here.\n"
)
TABLE = "| City | Limit |\n| --- | --- |\n| Oslo | 185 EUR |\n| Bergen | 160 EUR |\n"
BEGIN = 100


def passage_of(text: str, **fields: int) -> Passage:
    return Passage(text, "a.md", 0.5, "c", "d", char_start=BEGIN, char_end=BEGIN + len(text), **fields)


@pytest.mark.parametrize(
    ("text", "first", "last", "marked"),
    [
        (LIST, "A lost card", "A lost card", "A lost card costs 7 EUR."),
        (LIST, "A lost card", "It is sent", "A lost card costs 7 EUR. It is sent\nby mail."),
        (LIST, "Members", "Members", "Members borrow twelve books."),
        (TABLE, "City: Oslo", "City: Oslo", "| Oslo | 185 EUR"),
    ],
)
def test_what_is_quoted(text: str, first: str, last: str, marked: str) -> None:
    """The sentence alone, as it stands there: not the next one, nor what marks it."""
    split = [one for one in split_sentences(text) if not one.is_heading]
    begins, ends = (
        next(at for at, one in enumerate(split) if one.text.startswith(name)) for name in (first, last)
    )
    quote = " ".join(one.text for one in split[begins : ends + 1])
    span = span_of_quote(passage_of(text), split[begins].start, quote)
    assert span is not None
    assert text[span.char_start - BEGIN : span.char_end - BEGIN] == marked


def test_what_a_model_cites() -> None:
    """The sentence with what the answer says, in each of its passages; nothing where none says it."""
    answer = "A lost card costs 7 EUR [1]. A boat costs 40 EUR [1]."
    [span] = sentences_cited(answer, [passage_of(LIST)])[1]
    assert LIST[span.char_start - BEGIN : span.char_end - BEGIN] == "A lost card costs 7 EUR."
    assert sentences_cited(answer, [passage_of(TABLE)]) == {1: []}


def test_a_text_that_is_not_in_the_document() -> None:
    """A summary has no place there."""
    summary = passage_of(LIST, tree_level=1)
    assert span_of_quote(summary, LIST.index("A lost"), "A lost card costs 7 EUR.") is None
    assert sentences_cited("A lost card costs 7 EUR [1].", [summary]) == {1: []}
