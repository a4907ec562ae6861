"""Charts and SmartArt of slides and letters are read, as what they say is often nowhere else."""

from __future__ import annotations

import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import pptx
import pytest
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from builtin_plugins.documents.office import from_docx, from_pptx
from tests.builtin_plugins.documents.sample_documents import rewrite, slides, word

PLACE = (Inches(1), Inches(1), Inches(5), Inches(4))
DIAGRAM = (
    '<dgm:dataModel xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><dgm:ptLst><dgm:pt><dgm:t><a:p><a:r>'
    "<a:t>Plan</a:t></a:r></a:p></dgm:t></dgm:pt><dgm:pt><dgm:t><a:p><a:r><a:t>Build</a:t></a:r></a:p></dgm:t>"
    "</dgm:pt></dgm:ptLst></dgm:dataModel>"
)
KIND = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/diagramData"


def show(path: Path, kind: Any, data: Any, title: str = "") -> Path:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    chart = slide.shapes.add_chart(kind, *PLACE, data).chart
    if title:
        chart.chart_title.text_frame.text = title
    presentation.save(str(path))
    return path


def texts(blocks: Any) -> list[str]:
    return [block.text for block in blocks if block.text.strip()]


def test_chart(tmp_path: Path) -> None:
    """A chart is a table of its categories and series, below its title."""
    data = CategoryChartData()
    data.categories = ["East", "West"]
    data.add_series("Sales", (19.2, 21.4))
    data.add_series("Costs", (7, None))
    path = show(tmp_path / "a", XL_CHART_TYPE.COLUMN_CLUSTERED, data, "Year 2024")
    assert texts(from_pptx.parse(path)) == ["Year 2024", "\tSales\tCosts\nEast\t19.2\t7\nWest\t21.4"]


def test_chart_of_points(tmp_path: Path) -> None:
    """The places of points are the first column."""
    data = XyChartData()
    series = data.add_series("Wind")
    series.add_data_point(1, 7.5)
    series.add_data_point(2, 8.5)
    path = show(tmp_path / "a", XL_CHART_TYPE.XY_SCATTER, data)
    assert texts(from_pptx.parse(path)) == ["\tWind\n1\t7.5\n2\t8.5"]


def test_numbers_of_a_chart(tmp_path: Path) -> None:
    """Values and dates are as the cells show them, without the noise that Excel stores."""
    data = CategoryChartData(number_format="0%")
    data.categories = [date(2024, 5, 1), date(2024, 6, 1)]
    data.add_series("Share", (0.15, 0.30000000000000004))
    data.add_series("Price", (4.4000000000000004, 1200), number_format="General")
    path = show(tmp_path / "a", XL_CHART_TYPE.LINE, data)
    assert texts(from_pptx.parse(path)) == ["\tShare\tPrice\n2024-05-01\t15%\t4.4\n2024-06-01\t30%\t1200"]


@pytest.mark.parametrize(
    "comment",
    [
        "<p:cm><p:pos/><p:text>Too long.</p:text></p:cm>",
        "<p188:cm xmlns:p188='http://schemas.microsoft.com/office/powerpoint/2018/8/main'><p188:txBody><a:p>"
        "<a:r><a:t>Too long.</a:t></a:r></a:p></p188:txBody></p188:cm>",
    ],
)
def test_comments_on_a_slide(tmp_path: Path, comment: str) -> None:
    path = slides(tmp_path / "a", [("Title", "Body")])
    kind = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships/comments"
    relation = b'<Relationship Id="rId9" Type="%b" Target="../comments/c.xml"/></Relationships>' % kind
    rewrite(
        path,
        lambda name, data: (
            data.replace(b"</Relationships>", relation) if name.endswith("slide1.xml.rels") else data
        ),
    )
    names = (
        "xmlns:p='http://schemas.openxmlformats.org/presentationml/2006/main' "
        "xmlns:a='http://schemas.openxmlformats.org/drawingml/2006/main'"
    )
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("ppt/comments/c.xml", f"<p:cmLst {names}>{comment}</p:cmLst>")
    assert texts(from_pptx.parse(path)) == ["Title", "Body", "Too long."]


@pytest.mark.parametrize("kind", ["slides", "word"])
def test_diagram(tmp_path: Path, kind: str) -> None:
    """The boxes of SmartArt are in a part of their own."""
    if kind == "word":
        path, part = (
            word(tmp_path / "a", lambda document: document.add_paragraph("Text")),
            "word/document.xml",
        )
    else:
        path, part = slides(tmp_path / "a", [("Title", "Body")]), "ppt/slides/slide1.xml"
    folder, _, name = part.rpartition("/")
    rels = f"{folder}/_rels/{name}.rels"
    arrow = f'<Relationship Id="rIdD" Type="{KIND}" Target="/{folder}/diagrams/data1.xml"/></Relationships>'
    with zipfile.ZipFile(path) as archive:
        members = {one: archive.read(one) for one in archive.namelist()}
    members[rels] = members[rels].replace(b"</Relationships>", arrow.encode())
    members[f"{folder}/diagrams/data1.xml"] = DIAGRAM.encode()
    with zipfile.ZipFile(path, "w") as archive:
        for one, data in members.items():
            archive.writestr(one, data)
    found = texts((from_docx if kind == "word" else from_pptx).parse(path))
    assert found[-2:] == ["Plan", "Build"]


def test_a_chart_that_is_too_large(tmp_path: Path) -> None:
    """A chart of very many points is read in part: it costs neither the document nor its other texts."""
    data = CategoryChartData()
    data.categories = [f"c{number}" for number in range(1_500)]
    data.add_series("Many", range(1_500))
    (table,) = texts(from_pptx.parse(show(tmp_path / "a", XL_CHART_TYPE.LINE, data)))
    assert len(table.split("\n")) == 1_001 and table.endswith("c999\t999")


def test_a_broken_chart(tmp_path: Path) -> None:
    """It costs no other text of the document."""
    data = CategoryChartData()
    data.categories = ["East"]
    data.add_series("Sales", (1,))
    path = show(tmp_path / "a", XL_CHART_TYPE.LINE, data)
    rewrite(path, lambda name, data: data[:300] if "charts/chart" in name and name.endswith(".xml") else data)
    assert texts(from_pptx.parse(path)) == []
