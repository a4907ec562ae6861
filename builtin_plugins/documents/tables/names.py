"""Which of a table's first rows name its columns: words, or years and the like above amounts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice, takewhile
from typing import Final

from builtin_plugins.documents.tables.spans import names_of

_MOST_NAME_ROWS: Final = 3
_ROWS_BELOW: Final = 8
"""How many rows tell whether a column has amounts."""
_LONGEST_NAME: Final = 120
_LONGEST_CAPTION: Final = 120
_MOST_CAPTIONS: Final = 2
_LONGEST_AMOUNT: Final = 40
_CURRENCY: Final = r"(?:(?:US|AU?|CA?|HK|NT|R)?\$|[€£¥₹₩₽]|EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|CAD|AUD)"
_OPENING: Final = re.compile(rf"[(\[]|[-+−–(\[]?\s?{_CURRENCY}\s?[-+−–(\[]?")
_CLOSING: Final = re.compile(rf"[)\]]|[)\]]?\s?(?:%|‰|{_CURRENCY})\s?[)\]]?")
_AMOUNT: Final = re.compile(
    rf"(?:{_OPENING.pattern}|[-+−–])?\s?\.?\d[\d.,'’/: -]*+(?:{_CLOSING.pattern}|\s?[^\W\d]{{1,3}}\.?)?"
    rf"|{_CURRENCY}?\s?[-−–—*]{{1,3}}\s?%?|[nN]/?[aAmM]\.?"
)
_YEARS: Final = r"(?:19|20)\d\d(?:\s?[-/–]\s?(?:(?:19|20)\d\d|\d\d)){0,2}"
_PERIOD: Final = re.compile(
    rf"(?:{_YEARS}|\d\d?[./-]\d\d?[./-](?:\d\d)?\d\d)(?:\s?\(?[a-zA-Z\d*]\)?|\s?[*†]{{1,2}})?"
)
_IN_BRACKETS: Final = re.compile(r"[(\[].*[)\]]")
_AFTER_CURRENCY: Final = re.compile(rf"([-+−–(\[]?{_CURRENCY}|[(\[])\s+(?=[-−–(\[.]?\d)")
_BEFORE_CLOSING: Final = re.compile(r"(?<=[\d)]) (?=[)\]%‰]{1,3}$)")


def is_amount(cell: str) -> bool:
    """Whether a cell has a number, perhaps with a currency, a unit or brackets, or a mark for none."""
    return len(cell) <= _LONGEST_AMOUNT and _AMOUNT.fullmatch(cell) is not None and not is_period(cell)


def is_period(cell: str) -> bool:
    """Whether a cell has a year, several ("2022/23") or a date in digits, perhaps with a footnote's mark."""
    return len(cell) <= _LONGEST_AMOUNT and _PERIOD.fullmatch(cell) is not None


def names_columns(row: Sequence[str], below: Sequence[Sequence[str]] = ()) -> bool:
    """Whether a table's first row has names. They are distinct; the first column may have none, above the
    names of the rows. Names with digits ("2022", "Q1 2023", "FY 2022") have amounts below them.
    """
    cells = [cell.strip() for cell in row]
    if len(cells) < 2 or any(len(cell) > _LONGEST_NAME for cell in cells):
        return False
    is_crossed = not cells[0]
    names = cells[1:] if is_crossed else cells
    if len({*filter(None, names)}) < len(names):  # one is empty, or there twice
        return False
    unsure = {at for at, cell in enumerate(cells) if _has_digit(cell)}
    if not unsure and not is_crossed:
        return True
    if unsure == {0} or any(is_amount(cells[at]) for at in unsure):
        return False
    if len(cells) == 2 and not is_crossed and is_period(cells[1]) and not _are_amounts(1, below):
        return False  # "Founded: 1998", above other facts
    amount_columns = {at for at in range(1, len(cells)) if _has_amounts(at, below)}
    return (
        bool(amount_columns)
        and unsure <= {0, *amount_columns}
        and (not is_crossed or 2 * len(amount_columns) >= len(names))
    )


def count_names(rows: Sequence[Sequence[str]], spread: Sequence[Sequence[str]] = ()) -> int:
    """How many of a table's first rows name its columns. Above the last of them, there may be names of
    several columns, which `spread`, the rows once more, has in each of these.
    """
    count = 0
    for at in range(min(_MOST_NAME_ROWS, len(rows) - 1)):
        if count and not _has_periods(rows[at]):
            break
        names = names_of((spread or rows)[: at + 1])[1]
        if names_columns(names, rows[at + 1 : at + 1 + _ROWS_BELOW]):
            count = at + 1
        elif count or not _may_group(rows[at]):
            break
    return count


def begins_names(row: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether a row inside a table begins new column names: years and the like above amounts, and
    nothing, or a note, above the labels.
    """
    is_note = not row[0] or row[0][0] in "([" or row[0][-1] in ",:"
    is_named = is_note and len(row) > 1 and _has_periods(row)
    return is_named and names_columns(row, below[:_ROWS_BELOW])


def count_head(rows: Sequence[Sequence[str]]) -> int:
    """How many of a table's first rows are repeated above its portions: captions in one cell, and names."""
    lone = (sum(map(bool, row)) == 1 and is_caption(next(filter(None, row)).strip()) for row in rows)
    captions = len([*takewhile(bool, islice(lone, _MOST_CAPTIONS))])
    names = count_names(rows[captions:])
    return captions + names if names else count_names(rows)


def is_caption(line: str) -> bool:
    """Whether a line above a table may say what it shows, or in which unit ("in millions")."""
    if not line or len(line) > _LONGEST_CAPTION or line[0].islower() or not any(map(str.isalpha, line)):
        return False
    return _IN_BRACKETS.fullmatch(line) is not None or line[-1] not in ".:;,!?。"


def may_open(cell: str) -> bool:
    """Whether a cell is only what stands before a number: "$", "("."""
    return _OPENING.fullmatch(cell) is not None


def may_close(cell: str) -> bool:
    """Whether a cell is only what stands after a number: "%", ")", "€"."""
    return _CLOSING.fullmatch(cell) is not None


def joined_marks(cells: Sequence[str]) -> list[list[int]]:
    """The cells of a row by their numbers, a number together with the marks before and after it."""
    groups: list[list[int]] = []
    text = ""  # of the last group
    follows = len(cells) > 1 and may_close(cells[-1]) and not may_open(cells[-2])  # as in "12 €"
    for at, cell in enumerate(cells):
        is_closing = may_close(cell) and (follows or not may_open(cell))
        goes_on = may_open(text) and (may_open(text + cell) or is_amount(text + cell))
        if text and cell and (goes_on or (is_closing and not is_period(text) and is_amount(text + cell))):
            groups[-1].append(at)
            text += cell
        else:
            groups.append([at])
            text = cell
    return groups


def tidy_amount(cell: str) -> str:
    """A cell's text without spaces between a number and its marks: "$ (12 )" becomes "$(12)"."""
    return _BEFORE_CLOSING.sub("", _AFTER_CURRENCY.sub(r"\1", cell)) if is_amount(cell) else cell


def without_marks(
    rows: Sequence[Sequence[str]], spread: Sequence[Sequence[str]]
) -> tuple[list[list[str]], list[list[str]]]:
    """A table's rows, with marks such as "$" and "%" joined to the number beside them, and without the
    columns that this leaves empty; `spread` are the rows with wide cells repeated (see `count_names`).
    """
    joined, wides = ([[tidy_amount(cell) for cell in row] for row in table] for table in (rows, spread))
    emptied = set[int]()
    for row, wide in zip(joined, wides, strict=True):
        for group in joined_marks(row) if any(may_open(cell) or may_close(cell) for cell in row) else ():
            number = next((at for at in group if is_amount(row[at])), group[0])
            text = "".join(row[at] for at in group)
            for at in group if len(group) > 1 else ():
                row[at] = wide[at] = tidy_amount(text) if at == number else ""
            emptied.update(at for at in group if at != number)
    pairs = list(zip(joined, wides, strict=True))
    dropped = {at for at in emptied if all(_is_dropped(at, *pair) for pair in pairs)}
    for row, wide in pairs:
        for at in dropped:
            if at < len(row) and row[at] and at + 1 < len(row) and wide[at + 1] == row[at]:
                row[at + 1] = row[at]
    remaining = [[cell for at, cell in enumerate(row) if at not in dropped] for row in joined]
    return remaining, [[cell for at, cell in enumerate(row) if at not in dropped] for row in wides]


def lines_without_marks(lines: Sequence[str], spread: Mapping[str, str]) -> list[str]:
    """The same for rows as lines with tabs; `spread` has those with wide cells, by line."""
    rows = [line.split("\t") for line in lines]
    if not any(may_open(cell) or may_close(cell) for row in rows for cell in row):
        return [*lines]
    wides = [spread.get(line, line).split("\t") for line in lines]
    for row, wide in zip(rows, wides, strict=True):  # the empty cells at a line's end were left out
        row += [""] * (len(wide) - len(row))
        wide += [""] * (len(row) - len(wide))
    return ["\t".join(row).rstrip() for row in without_marks(rows, wides)[0]]


def _is_dropped(column: int, row: Sequence[str], spread: Sequence[str]) -> bool:
    """Whether a row has nothing in a column but a part of a wide cell."""
    if column >= len(row) or not (row[column] or spread[column]):
        return True
    beside = [spread[at] for at in (column - 1, column + 1) if 0 <= at < len(spread)]
    return spread[column] in beside


def _may_group(row: Sequence[str]) -> bool:
    """Whether a row may have names above those of single columns: words or years, in some of the columns."""
    cells = [cell.strip() for cell in row]
    return any(cells[1:]) and not any(map(is_amount, filter(None, cells)))


def _has_periods(row: Sequence[str]) -> bool:
    """Whether a row goes on with names: each column but the first has one with digits."""
    return all(_has_digit(cell) and not is_amount(cell.strip()) for cell in row[1:])


def _has_amounts(column: int, rows: Sequence[Sequence[str]]) -> bool:
    cells = [row[column].strip() for row in rows if column < len(row) and row[column].strip()]
    amounts = sum(map(is_amount, cells))
    return bool(amounts) and 2 * amounts >= len(cells)


def _are_amounts(column: int, rows: Sequence[Sequence[str]]) -> bool:
    """Whether a column has nothing but amounts."""
    return all(is_amount(row[column].strip()) for row in rows if column < len(row) and row[column].strip())


def _has_digit(cell: str) -> bool:
    return any(map(str.isdigit, cell))
