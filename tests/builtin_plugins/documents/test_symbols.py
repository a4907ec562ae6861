"""What a page shows without storing it as text, and what it shows above the text."""

from __future__ import annotations

from pathlib import Path

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

from builtin_plugins.documents.markup import from_html
from builtin_plugins.documents.office import from_docx, from_odt
from tests.builtin_plugins.documents.sample_documents import package


def read_word(folder: Path, runs: str) -> str:
    document = docx.Document()
    document.element.body.insert(0, parse_xml(f"<w:p {nsdecls('w')}>{runs}</w:p>"))
    document.save(str(folder / "a.docx"))
    return "|".join(block.text for block in from_docx.parse(folder / "a.docx"))


def field(value: str) -> str:
    return (
        f'<w:r><w:fldChar w:fldCharType="begin"><w:ffData>{value}</w:ffData></w:fldChar></w:r>'
        '<w:r><w:instrText> FORM </w:instrText></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )


@pytest.mark.parametrize(
    ("font", "code", "expected"),
    [
        ("Symbol", "F061", "α"),
        ("Symbol", "F06D", "μ"),
        ("Symbol", "F057", "Ω"),
        ("Symbol", "F0A3", "≤"),
        ("Symbol", "F0B1", "±"),
        ("Symbol", "F0DE", "⇒"),
        ("Symbol", "F0E5", "∑"),
        ("Symbol", "0028", "("),
        ("Wingdings", "F0FE", "☑"),
        ("Wingdings", "F0E0", "→"),
        ("Wingdings 2", "F050", "✓"),
        ("Webdings", "F061", ""),
        ("Symbol", "what", ""),
    ],
)
def test_symbols_of_word(tmp_path: Path, font: str, code: str, expected: str) -> None:
    runs = (
        f'<w:r><w:t>5</w:t></w:r><w:r><w:sym w:font="{font}" w:char="{code}"/></w:r><w:r><w:t>m</w:t></w:r>'
    )
    assert read_word(tmp_path, runs) == f"5{expected}m"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("<w:checkBox><w:default w:val='0'/><w:checked/></w:checkBox>", "☒"),
        ("<w:checkBox><w:default w:val='1'/><w:checked w:val='0'/></w:checkBox>", "☐"),
        ("<w:checkBox><w:default w:val='1'/></w:checkBox>", "☒"),
        (
            "<w:ddList><w:result w:val='1'/><w:listEntry w:val='Oslo'/><w:listEntry w:val='Bergen'/>"
            "</w:ddList>",
            "Bergen",
        ),
        ("<w:ddList><w:listEntry w:val='Oslo'/><w:listEntry w:val='Bergen'/></w:ddList>", "Oslo"),
        ("<w:ddList><w:result w:val='7'/><w:listEntry w:val='Oslo'/></w:ddList>", ""),
    ],
)
def test_old_form_fields_of_word(tmp_path: Path, value: str, expected: str) -> None:
    runs = f"<w:r><w:t>Insured:</w:t></w:r>{field(value)}<w:r><w:t>.</w:t></w:r>"
    assert read_word(tmp_path, runs) == f"Insured:{expected}."


def test_pronunciation_above_asian_letters(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        "<html><body><p><ruby>東<rp>(</rp><rt>とう</rt><rp>)</rp>京<rt>きょう</rt></ruby>です</p></body></html>"
    )
    assert [block.text for block in from_html.parse(tmp_path / "a.html")] == ["東京です"]

    def ruby(above: str, base: str) -> str:
        parts = (
            f"<w:{name}><w:r><w:t>{text}</w:t></w:r></w:{name}>"
            for name, text in (("rt", above), ("rubyBase", base))
        )
        return f"<w:r><w:ruby>{''.join(parts)}</w:ruby></w:r>"

    assert read_word(tmp_path, ruby("とう", "東") + ruby("きょう", "京")) == "東京"
    space = "urn:oasis:names:tc:opendocument:xmlns:"
    names = f'xmlns:office="{space}office:1.0" xmlns:text="{space}text:1.0"'
    words = "<text:ruby-base>東京</text:ruby-base><text:ruby-text>とうきょう</text:ruby-text>"
    content = (
        f"<office:document-content {names}><office:body><office:text><text:p><text:ruby>{words}</text:ruby>"
        "です</text:p></office:text></office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.text"
    path = package(tmp_path / "a.odt", {"mimetype": kind, "content.xml": content})
    assert [block.text for block in from_odt.parse(path)] == ["東京です"]
