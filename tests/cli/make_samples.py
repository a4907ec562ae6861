"""Writes the sample documents that are no plain text: `python -m tests.cli.make_samples`.

They hold the same on every run; only the time stamps inside the DOCX and XLSX archives differ.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from docx import Document
from openpyxl import Workbook
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Flowable, PageBreak, Paragraph, SimpleDocTemplate

SAMPLES = Path(__file__).resolve().parents[2] / "builtin_plugins" / "demo" / "samples"
WRITTEN = datetime(2026, 9, 1, 8, 0, tzinfo=UTC)

Section = tuple[str, list[str]]

TRAVEL: list[list[Section]] = [
    [
        (
            "1. Before you travel",
            [
                "Every trip outside the own country is approved by the team lead before anything is booked. "
                "Trips that cost more than 2,500 euro also need the approval of the finance office, which "
                "answers within two working days.",
                "Flights are booked through the travel desk in Porto. Whoever books privately is paid back "
                "only what the travel desk would have paid on the same day.",
            ],
        ),
        (
            "2. Train or aeroplane",
            [
                "Take the train when the journey takes less than six hours from door to door. First class "
                "is allowed on journeys of more than three hours, because it can be used for work.",
                "Flights are economy class. On flights of more than seven hours premium economy may be "
                "booked.",
            ],
        ),
    ],
    [
        (
            "3. Hotels",
            [
                "A hotel in Oslo may cost up to 185 euro per night, one in London up to 210 euro, one in "
                "Bergen up to 160 euro and one in Lisbon up to 145 euro. In all other cities the limit is "
                "135 euro. Breakfast is included in these amounts.",
                "Where a trade fair makes them impossible to keep, the team lead may approve half as much "
                "again.",
            ],
        ),
        (
            "4. Meals",
            [
                "Meals are paid as a daily allowance: 58 euro in the Nordic countries, 44 euro elsewhere in "
                "Europe and 62 euro in the rest of the world. On the days of departure and return it is "
                "half of that. No receipts are needed.",
                "Invitations of customers are claimed separately, with the receipt and the names of the "
                "guests.",
            ],
        ),
    ],
    [
        (
            "5. Cars",
            [
                "A rental car is allowed where a site can't be reached by public transport within 45 "
                "minutes. Choose the smallest car that carries the equipment. For the own car the company "
                "pays 0.38 euro per kilometre.",
                "Parking fines and speeding tickets are paid by the driver.",
            ],
        ),
        (
            "6. Claiming expenses",
            [
                "Claims are entered in the expense system within 30 days of the return, with a photograph "
                "of each receipt above 25 euro. What is entered by the 20th of a month is paid with the "
                "salary of that month. Claims that are older than 90 days are not paid.",
            ],
        ),
    ],
]

MANUAL: list[Section] = [
    (
        "Choosing a place",
        [
            "Set up the station on open ground. The distance to trees and buildings should be at least ten "
            "times their height, or the wind readings are too low. The mast foot needs a slab of concrete of "
            "60 by 60 centimetres, 40 centimetres deep.",
        ],
    ),
    (
        "Calibrating the anemometer",
        [
            "Calibrate the anemometer after mounting and then once a year. Cover it with the grey hood so "
            "that no air moves. Hold the button MODE for five seconds until the display shows CAL. The "
            "calibration takes four minutes; do not touch the mast while it runs. The display shows DONE "
            "when the offset is stored.",
        ],
    ),
    (
        "Power",
        [
            "The battery lasts for 21 days without sun at 10 degrees Celsius and for 12 days at minus 20 "
            "degrees. Replace it every four years. Never charge a battery below minus 25 degrees: the logger "
            "switches the solar panel off by itself and shows the code E11.",
        ],
    ),
    (
        "Error codes",
        [
            "E03: the memory card is full. Copy the readings and format the card in the logger.",
            "E07: the rain gauge is blocked, most often by leaves or a nest. Take off the funnel, clean it "
            "and press RESET. If the code comes back within a day, replace the tipping bucket "
            "(article NI-0426).",
            "E09: the clock was lost because the battery was empty. Set the time; readings since then carry "
            "no date and can't be repaired.",
            "E11: the battery is too cold to be charged. No action is needed.",
        ],
    ),
    (
        "Firmware",
        [
            "Updates are signed. The logger refuses a file whose signature does not fit, and starts with the "
            "previous version when the new one fails to start three times. Version 4.2 needs the boot loader "
            "1.8 or later.",
        ],
    ),
]

PARTS = [
    ("article", "part", "fits", "price_eur", "in stock"),
    ("NI-0426", "Tipping bucket for the rain gauge", "Aurora 2, Aurora 3", 48, 212),
    ("NI-0411", "Transducer for the ultrasonic anemometer", "Aurora 3", 96, 75),
    ("NI-0503", "Charge controller", "Aurora 3", 74, 31),
    ("NI-0301", "Battery 12 V, 18 Ah", "Aurora 2, Aurora 3", 89, 140),
    ("NI-0305", "Grey calibration hood", "Aurora 3", 22, 403),
    ("NI-0120", "Guy wires, set of three", "Aurora 2, Aurora 3, Aurora 3 Marine", 35, 88),
]


def write_pdf(path: Path) -> None:
    styles = getSampleStyleSheet()
    story: list[Flowable] = [Paragraph("Nordlys Instruments: travel policy", styles["Title"])]
    for number, page in enumerate(TRAVEL):
        story += [PageBreak()] if number else []
        for heading, paragraphs in page:
            story.append(Paragraph(heading, styles["Heading2"]))
            story += [Paragraph(text, styles["BodyText"]) for text in paragraphs]
    SimpleDocTemplate(str(path), pagesize=A4, title="Travel policy", invariant=1).build(story)


def write_docx(path: Path) -> None:
    document = Document()
    document.core_properties.created = document.core_properties.modified = WRITTEN
    document.add_heading("Aurora 3 weather station: manual", 0)
    for heading, paragraphs in MANUAL:
        document.add_heading(heading, 1)
        for text in paragraphs:
            document.add_paragraph(text)
    document.save(str(path))


def write_xlsx(path: Path) -> None:
    book = Workbook()
    book.properties.created = book.properties.modified = WRITTEN.replace(tzinfo=None)
    sheet = book.active
    assert sheet is not None
    sheet.title = "Spare parts"
    for row in PARTS:
        sheet.append(row)
    book.save(path)


if __name__ == "__main__":
    write_pdf(SAMPLES / "travel-policy.pdf")
    write_docx(SAMPLES / "aurora-3-manual.docx")
    write_xlsx(SAMPLES / "spare-parts.xlsx")
