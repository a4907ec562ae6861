"""Formulas are read in one line, whatever program wrote them: without its signs, √(b²-4ac) is b2-4ac."""

from __future__ import annotations

from pathlib import Path

import docx
import pytest
from docx.oxml import parse_xml

from builtin_plugins.documents.blocks import Block
from builtin_plugins.documents.markup import from_html
from builtin_plugins.documents.office import from_docx, from_odt
from tests.builtin_plugins.documents.sample_documents import package

OFFICE_MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
MATHML = "http://www.w3.org/1998/Math/MathML"
OPEN = "urn:oasis:names:tc:opendocument:xmlns:"


def texts(blocks: list[Block]) -> str:
    return "|".join(block.text for block in blocks)


def read_page(folder: Path, formula: str) -> str:
    (folder / "a.html").write_text(f"<html><body><p>So {formula} holds</p></body></html>")
    return texts(list(from_html.parse(folder / "a.html")))


def run(text: str) -> str:
    return f'<m:r><m:t xml:space="preserve">{text}</m:t></m:r>'


def part(name: str, *operands: tuple[str, str], **properties: str) -> str:
    values = "".join(f'<m:{key} m:val="{value}"/>' for key, value in properties.items())
    written = "".join(f"<m:{operand}>{text}</m:{operand}>" for operand, text in operands)
    return f"<m:{name}><m:{name}Pr>{values}<m:ctrlPr/></m:{name}Pr>{written}</m:{name}>"


ROOT = part("rad", ("deg", ""), ("e", part("sSup", ("e", run("b")), ("sup", run("2"))) + run("-4ac")))


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (run("x=") + part("f", ("num", run("-b±") + ROOT), ("den", run("2a"))), "x=(-b±√(b^2-4ac))/(2a)"),
        (part("rad", ("deg", run("3")), ("e", run("27"))), "27^(1/3)"),
        (part("sSubSup", ("e", run("a")), ("sub", run("ij")), ("sup", run("2"))), "a_ij^2"),
        (part("sSub", ("e", run("CO")), ("sub", run("2"))) + run("+C"), "CO2 +C"),
        (part("d", ("e", run("a")), ("e", run("b")), begChr="[", sepChr=";", endChr=")"), "[a;b)"),
        (part("d", ("e", part("f", ("num", run("1")), ("den", run("2"))))), "(1/2)"),
        (part("d", ("e", part("f", ("num", run("n")), ("den", run("k")), type="noBar"))), "(n over k)"),
        (part("nary", ("sub", run("i=1")), ("sup", run("n")), ("e", run("i")), chr="∑"), "∑_(i=1)^n i"),
        (part("func", ("fName", run("sin")), ("e", run("x"))), "sin x"),
        (part("limUpp", ("e", run("x")), ("lim", run("\u0302"))), "x̂"),
        (part("limLow", ("e", run("lim")), ("lim", run("x→0"))) + run("f"), "lim_(x→0) f"),
        (part("acc", ("e", run("x"))) + run("=") + part("bar", ("e", run("y")), pos="top"), "x̂=ȳ"),
        (
            part(
                "m",
                ("mr", "<m:e/>".replace("/>", f">{run('a')}</m:e>") * 2),
                ("mr", f"<m:e>{run('b')}</m:e>"),
            ),
            "a, a; b",
        ),
        (run("Numb") + run("er 1") + run("0"), "Number 10"),
    ],
)
def test_formula_of_word(tmp_path: Path, formula: str, expected: str) -> None:
    """Roots, scripts, delimiters, sums, accents and matrices keep the signs that give them their meaning."""
    document = docx.Document()
    document.add_paragraph("So ")._p.append(
        parse_xml(f'<m:oMath xmlns:m="{OFFICE_MATH}">{formula}</m:oMath>')
    )
    document.save(str(tmp_path / "a.docx"))
    assert texts(list(from_docx.parse(tmp_path / "a.docx"))) == f"So {expected}"


def test_deleted_part_of_a_formula(tmp_path: Path) -> None:
    document = docx.Document()
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    formula = f'{run("x=1")}<w:del xmlns:w="{space}">{run("000")}</w:del>'
    document.add_paragraph()._p.append(parse_xml(f'<m:oMath xmlns:m="{OFFICE_MATH}">{formula}</m:oMath>'))
    document.save(str(tmp_path / "a.docx"))
    assert texts(list(from_docx.parse(tmp_path / "a.docx"))) == "x=1"


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("<msup><mi>x</mi><mn>2</mn></msup><mo>+</mo><msub><mi>x</mi><mn>1</mn></msub>", "x^2+x1"),
        ("<msqrt><mi>a</mi><mo>+</mo><mi>b</mi></msqrt>", "√(a+b)"),
        ("<mroot><mi>x</mi><mn>4</mn></mroot>", "x^(1/4)"),
        ("<mn>2</mn><mfrac><mn>1</mn><mn>3</mn></mfrac>", "2 1/3"),
        ("<mi>sin</mi><mo>&#8289;</mo><mi>x</mi><mo>&#8290;</mo><mi>y</mi>", "sin xy"),
        (
            "<munderover><mo>∑</mo><mrow><mi>k</mi><mo>=</mo><mn>0</mn></mrow><mi>∞</mi></munderover><mi>k</mi>",
            "∑_(k=0)^∞ k",
        ),
        ("<mover><mi>v</mi><mo>→</mo></mover><msup><mi>f</mi><mo>′</mo></msup>", "v⃗f′"),
        ("<mfenced><mi>a</mi><mi>b</mi></mfenced>", "(a, b)"),
        (
            "<msub><mi>a</mi><mi>i</mi></msub><msub><mi>b</mi><mi>i</mi></msub>"
            "<msup><mi>x</mi><mi>n</mi></msup><mi>y</mi>",
            "a_i b_i x^n y",
        ),
        (
            "<mo>{</mo><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mtext>if true</mtext></mtd></mtr>"
            "<mtr><mtd><mn>0</mn></mtd><mtd><mtext>else</mtext></mtd></mtr></mtable>",
            "{1, if true; 0, else",
        ),
        ("<semantics><mi>E</mi><annotation encoding='application/x-tex'>\\E</annotation></semantics>", "E"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "m:"])
def test_formula_of_a_page(tmp_path: Path, formula: str, expected: str, prefix: str) -> None:
    """MathML in web pages and books is read, with and without a prefix; its source in TeX is not."""
    written = f"<math>\n{formula}\n</math>".replace("</", "</\0").replace("<", f"<{prefix}")
    written = written.replace(f"<{prefix}/\0", f"</{prefix}")
    assert read_page(tmp_path, written) == f"So {expected} holds"


def test_formula_after_a_number(tmp_path: Path) -> None:
    document = docx.Document()
    half = part("f", ("num", run("1")), ("den", run("2")))
    document.add_paragraph("2")._p.append(parse_xml(f'<m:oMath xmlns:m="{OFFICE_MATH}">{half}</m:oMath>'))
    document.save(str(tmp_path / "a.docx"))
    assert texts(list(from_docx.parse(tmp_path / "a.docx"))) == "2 1/2"
    half = "<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math>"
    assert read_page(tmp_path, f"x2{half} a{half}") == "So x2 1/2 a1/2 holds"


def test_formula_that_a_page_draws_again(tmp_path: Path) -> None:
    formula = "<math><msup><mi>c</mi><mn>2</mn></msup></math>"
    drawn = '<span class="katex-html" aria-hidden="true"><span>c</span><span>2</span></span>'
    page = f'<span class="katex"><span class="katex-mathml">{formula}</span>{drawn}</span>'
    assert read_page(tmp_path, page) == "So c^2 holds"


def test_formula_that_a_page_only_draws(tmp_path: Path) -> None:
    page = '<span class="katex"><span class="katex-html" aria-hidden="true"><span>E</span></span></span>'
    assert read_page(tmp_path, page) == "So E holds"


def test_formula_nested_without_end(tmp_path: Path) -> None:
    """A hundred thousand roots within each other cost as much as their text."""
    formula = f"<math>{'<msqrt>' * 100_000}<mi>x</mi>{'</msqrt>' * 100_000}</math>"
    read = read_page(tmp_path, formula)
    assert read.startswith("So √") and "x" in read and read.endswith("holds") and len(read) < 1_000


def test_formula_of_open_document(tmp_path: Path) -> None:
    spaces = " ".join(
        f'xmlns:{name}="{OPEN}{uri}:1.0"' for name, uri in (("office", "office"), ("text", "text"))
    )
    draw = f'xmlns:draw="{OPEN}drawing:1.0" xmlns:xlink="http://www.w3.org/1999/xlink"'
    frame = '<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>'
    missing = '<draw:frame><draw:object xlink:href="./Object 2"/></draw:frame>'
    chart = '<draw:frame><draw:object xlink:href="./Object 3"/></draw:frame>'
    content = (
        f"<office:document-content {spaces} {draw}><office:body><office:text>"
        f"<text:p>So 4{frame} holds{missing}{chart}</text:p></office:text></office:body>"
        "</office:document-content>"
    )
    formula = (
        f'<math xmlns="{MATHML}"><semantics><mrow><mn>2</mn><msqrt><mi>x</mi></msqrt></mrow>'
        '<annotation encoding="StarMath 5.0">sqrt {x} = 2</annotation></semantics></math>'
    )
    parts = {
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": content,
        "Object 1/content.xml": formula,
        "Object 3/content.xml": content.replace("So", "Chart"),
    }
    assert texts(list(from_odt.parse(package(tmp_path / "a.odt", parts)))) == "So 4 2√x holds"
