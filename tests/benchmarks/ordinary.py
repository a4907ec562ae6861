"""Ordinary questions about ordinary documents, without a model: what a person gets in the first hour.

Two sets with 28 questions each: policies as Word and PDF, minutes, a receipt, a scan, a picture, CSV, XLSX,
mails, a saved web page, notes, all made here; two more, of 32 and 28, in `ordinary_papers`. Rules for answers
were chosen on the first and the third; some were mended after misses in the second and the fourth.

An answer is `right` if what was asked for is quoted, or is in a marked sentence of the first three passages;
`half` if only a part of it is; `refused` if nothing answers it; `wrongly refused`; `useless` if what is shown
does not hold it; `wrong` if something that isn't so is quoted as the answer.

    python -m tests.benchmarks.ordinary [first|second|third|fourth] [--show]
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from tests.benchmarks.ordinary_files import Asked, book, mail, pdf, scan, word
from tests.benchmarks.ordinary_papers import (
    FOURTH,
    THIRD,
    fourth_documents,
    third_documents,
)
from tests.benchmarks.serving import account, platform
from tests.benchmarks.small_documents import settled

_MARKED = 3
_SURE = 0.8


FIRST = (
    Asked("How many days of remote work are allowed per week?", (r"three days",), r"two days"),
    Asked("Which remote work policy is in force?", (r"replaces the policy of 2024|1 April 2026",)),
    Asked("Who approves working from abroad?", (r"[Hh]ead of [Pp]eople",)),
    Asked("How much does the company pay for a desk chair?", (r"250",)),
    Asked("What is the total on the receipt?", (r"64\.35",), r"58\.50|5\.85"),
    Asked("When was the coffee bought?", (r"14/03/2026|14 March 2026",)),
    Asked("Which card was used to pay?", (r"4417|VISA",)),
    Asked("What is the customer number on the water bill?", (r"88213",)),
    Asked("By when must the water bill be paid?", (r"30 May 2026",)),
    Asked("Who attended the meeting of the garden club?", (r"Mira Holt", r"Jonas Wik")),
    Asked("When is the next meeting of the garden club?", (r"9 June",)),
    Asked("Where does the next meeting take place?", (r"Boathouse|boathouse",)),
    Asked("Who won the photo contest?", (r"Lena Aas",)),
    Asked("What is the phone number of the plumber?", (r"555.?0142",)),
    Asked("How much rent does Birch Street 7 bring in?", (r"1,?450",), r"1,?290|1,?720"),
    Asked("Which apartment has the highest rent?", (r"Quay 2",), r"Birch Street 7|Hill Road 11"),
    Asked("How many bicycles were sold in May?", (r"\b61\b",), r"\b48\b|\b53\b"),
    Asked("What time does the flight to Lisbon leave?", (r"07:25|7:25",)),
    Asked("What is the booking reference of the flight?", (r"QX7LMP",)),
    Asked("Can I cancel the hotel for free?", (r"until 2 June|before 2 June",)),
    Asked("How long do I boil the eggs for the salad?", (r"nine minutes|9 minutes",)),
    Asked("What is the height of the lighthouse at Skarv?", (r"31 met|31 m\b",)),
    Asked("When was the lighthouse built?", (r"1874",), r"1931"),
    Asked("How many documents do I have?", (r"\b13\b",)),
    Asked("What is the capital of France?"),
    Asked("How do I reset the coffee machine?"),
    Asked("What is the salary of the head of people?"),
    Asked("Who is the owner of the boathouse?"),
)

_POLICY = (
    ("Remote work policy 2026", "Heading 1"),
    ("This policy applies from 1 April 2026 and replaces the policy of 2024.", None),
    ("How often", "Heading 2"),
    ("Employees may work remotely up to three days per week. Tuesday is an office day for everybody.", None),
    ("From abroad", "Heading 2"),
    ("Working from abroad needs the approval of the Head of People, at least two weeks ahead.", None),
    ("Equipment", "Heading 2"),
    ("The company pays up to 250 euro for a desk chair and up to 180 euro for a screen.", None),
)
_OLD_POLICY = (
    "Remote work policy 2024",
    "",
    "Employees may work remotely up to two days per week.",
    "Requests go to the line manager by e-mail.",
)
_RECEIPT = """CAFE NORD
Harbour Street 3
14/03/2026  10:42
------------------------
2 x Coffee beans 1kg      39.00
1 x Filter papers          4.50
1 x Mug                   15.00
------------------------
SUBTOTAL                  58.50
VAT 10%                    5.85
TOTAL                     64.35
========================
VISA **** 4417
Thank you!
"""
_MINUTES = """# Garden club, minutes of 12 May 2026

Present: Mira Holt, Jonas Wik, Petra Lind

1. The fence is repaired. Costs: 310 euro.
2. Photo contest

   | Rank | Name | Votes |
   |---|---|---|
   | 1 | Lena Aas | 24 |
   | 2 | Jonas Wik | 19 |

Next meeting:
9 June 2026, 18:00
Boathouse, upper floor
"""
_NOTES = """Useful numbers

Plumber: Olav Berg, 555-0142
Electrician: Sparks & Co, 555-0177
Chimney sweep comes every October.

Egg salad: boil the eggs for nine minutes, let them cool, chop them, add chives and mustard.
"""
_RENTS = "Apartment;Tenant;Monthly\nrent (EUR)\n".replace("Monthly\nrent (EUR)", '"Monthly\nrent (EUR)"') + (
    "Birch Street 7;A. Moe;1450\nHill Road 11;S. Dahl;1290\nQuay 2;R. Vik;1720\n"
)
_SALES = (("Month", "Bicycles\nsold", "Helmets"), ("March", 48, 20), ("April", 53, 31), ("May", 61, 44))
_PAGE = """<!doctype html><html lang="en"><head><title>Skarv Lighthouse - Coast Wiki</title></head><body>
<nav><ul><li><a href="/">Main page</a></li><li><a href="/fr">Français</a></li>
<li><a href="/de">Deutsch</a></li></ul></nav><main><article><h1>Skarv Lighthouse</h1>
<p>Skarv Lighthouse stands on the island of Skarv. The tower is 31 metres high and was built in 1874 from
local granite. It was electrified in 1931 and has been automatic since 1986.</p>
<p>The lamp can be seen from 18 nautical miles. Visitors can climb the 142 steps from June to August.</p>
</article></main><footer><a href="/cat">Categories: Lighthouses | Buildings | France</a> Privacy</footer>
</body></html>"""


def first_documents() -> dict[str, bytes]:
    """The files of the first set, by name."""
    bill = (
        "Harbour Water Works",
        "Customer number: 88213",
        "Amount due: 41.20 EUR",
        "Payable by 30 May 2026",
    )
    flight = "Your flight to Lisbon: departs 07:25 on 3 June 2026 from gate B4.\nBooking reference: QX7LMP\n"
    hotel = (
        "Hotel Tejo, 3 to 7 June. You can cancel free of charge until 2 June, 18:00. Breakfast is included.\n"
    )
    return {
        "remote-work-2026.docx": word(_POLICY),
        "remote-work-2024.pdf": pdf(*_OLD_POLICY),
        "receipt-cafe.txt": _RECEIPT.encode(),
        "water-bill.png": scan(bill, "PNG"),
        "noticeboard.jpg": scan(("Lost: grey cat", "Please call Ida", "after six"), "JPEG", blurred=True),
        "garden-club.md": _MINUTES.encode(),
        "notes.txt": _NOTES.encode(),
        "rents.csv": _RENTS.encode(),
        "sales.xlsx": book("Sales 2026", _SALES),
        "flight.eml": mail("Your trip", flight),
        "hotel.eml": mail("Your stay", hotel),
        "skarv.html": _PAGE.encode(),
        "house-rules.pdf": pdf(
            "House rules", "Quiet hours are from 22:00 to 07:00.", "Bins go out on Monday."
        ),
    }


SECOND = (
    Asked("How much is the yearly membership fee?", (r"\b80\b",), r"\b40\b"),
    Asked("What do students pay?", (r"\b40\b",)),
    Asked("Until when must the fee be paid?", (r"31 January",)),
    Asked("Which bylaws are currently valid?", (r"supersede|1 January 2026",)),
    Asked("How many members are needed for a quorum?", (r"twelve|\b12\b",)),
    Asked("Who may sign contracts?", (r"treasurer",)),
    Asked("What did the taxi cost?", (r"23\.80",), r"21\.64|2\.16"),
    Asked("What is the number of the taxi receipt?", (r"T-5519",)),
    Asked("Who took part in the board meeting?", (r"Noor Aziz", r"Pia Storm")),
    Asked("When does the board meet again?", (r"2 July",)),
    Asked("What was decided about the boiler?", (r"replaced before winter|replace",)),
    Asked("Which supplier has the lowest price?", (r"Tarn",), r"Alder|Wren"),
    Asked("What does Wren Heating charge?", (r"4,?120",), r"3,?890|4,?450"),
    Asked("How many visitors came in May?", (r"\b733\b",), r"\b512\b|\b648\b"),
    Asked("Which month had the most visitors?", (r"May",), r"Month: (March|April)"),
    Asked("Who came first in the chess tournament?", (r"Tom Reed",), r"Ivy Lane"),
    Asked("When will the parcel arrive?", (r"19 May|Tuesday",)),
    Asked("What is the tracking number?", (r"ZR902884",)),
    Asked("At what time is the dentist appointment?", (r"14:20",)),
    Asked("What is the IBAN on the invoice?", (r"NO12 3456",)),
    Asked("How much is due on the invoice of the printer?", (r"318\.00",)),
    Asked("How long is the Alva bridge?", (r"212 metres|212 m",)),
    Asked("Who designed the bridge?", (r"Karin Moll",)),
    Asked("Where is the spare key?", (r"blue flowerpot",)),
    Asked("What is the password of the wireless network?", (r"heron-lake",)),
    Asked("What is the weather in Rome?"),
    Asked("Who is the chair of the tennis club?"),
    Asked("How tall is the tower of the town hall?"),
)
_BYLAWS = (
    ("Bylaws of the harbour club", "Title"),
    ("These bylaws are effective from 1 January 2026 and supersede all earlier ones.", None),
    ("Fees", "Heading 1"),
    ("The yearly membership fee is 80 euro; students pay 40 euro. It is to be paid by 31 January.", None),
    ("Meetings", "Heading 1"),
    ("A quorum needs twelve members. Decisions are taken by a simple majority.", None),
    ("Contracts", "Heading 1"),
    ("Contracts are signed by the treasurer together with one member of the board.", None),
)
_TAXI = """CITY CABS
Receipt T-5519
========
Ride 9.2 km      21.64
VAT               2.16
--------
TOTAL            23.80
Paid in cash
"""
_BOARD = """# Board, 4 June 2026

Attendees: Noor Aziz, Pia Storm, Carl Vane

## Boiler

The boiler will be replaced before winter. Pia collects offers.

## Next

The board meets again on 2 July at 19:00.
"""
_CHESS = "Place,Player,Points\n1,Tom Reed,6.5\n2,Ivy Lane,6\n3,Max Holm,5\n"
_OFFERS = "Supplier,Price (EUR),Weeks\nAlder,4450,3\nWren Heating,4120,5\nTarn,3890,8\n"
_VISITORS = (("Month", "Visitors", "Groups"), ("March", 512, 9), ("April", 648, 12), ("May", 733, 15))
_BRIDGE = """<html><head><title>Alva bridge</title></head><body><div class="menu"><a href="/">Home</a>
<a href="/it">Italiano</a> <a href="/rome">Weather in other towns</a></div><article><h1>Alva bridge</h1>
<p>The Alva bridge crosses the river Alva. It is 212 metres long and was opened in 1968.
Karin Moll designed it.</p>
<p>Cyclists and pedestrians may use it at all hours; lorries above 12 tonnes may not.</p></article>
<footer>Contact | Imprint | Town hall</footer></body></html>"""
_KEYS = """Cabin

The spare key is under the blue flowerpot behind the shed.
Wireless network: cabin-guest, password: heron-lake
Firewood is delivered in August.
"""


def second_documents() -> dict[str, bytes]:
    """The files of the second set, by name."""
    invoice = (
        "Print & Copy AS",
        "Invoice 20881",
        "Printer, colour",
        "Amount due: 318.00 EUR",
        "IBAN NO12 3456 7890",
    )
    parcel = "Your parcel arrives on Tuesday, 19 May, between 9 and 12.\nTracking number: ZR902884\n"
    dentist = "Your appointment: 21 May at 14:20 with Dr Sund. Please bring your insurance card.\n"
    return {
        "bylaws.docx": word(_BYLAWS),
        "taxi.txt": _TAXI.encode(),
        "invoice-printer.png": scan(invoice, "PNG"),
        "poster.jpg": scan(("Summer fair", "Music and cake"), "JPEG", blurred=True),
        "board-june.md": _BOARD.encode(),
        "cabin.txt": _KEYS.encode(),
        "offers.csv": _OFFERS.encode(),
        "chess.csv": _CHESS.encode(),
        "visitors.xlsx": book("Visitors", _VISITORS),
        "parcel.eml": mail("Your parcel", parcel),
        "dentist.eml": mail("Appointment", dentist),
        "bridge.html": _BRIDGE.encode(),
        "parking.pdf": pdf(
            "Parking", "Visitors park on the gravel field.", "Boat trailers go behind the hall."
        ),
    }


SETS = {
    "first": (first_documents, FIRST),
    "second": (second_documents, SECOND),
    "third": (third_documents, THIRD),
    "fourth": (fourth_documents, FOURTH),
}


def verdict(asked: Asked, answer: dict[str, Any]) -> str:
    """How an answer is judged."""
    sources = answer["sources"]
    if not sources and not asked.parts:
        return "refused"
    if not sources and not all(re.search(part, answer["answer"]) for part in asked.parts):
        return "wrongly refused"
    seen = [answer["answer"], *(_marked(source) for source in sources[:_MARKED])]
    found = [any(re.search(part, text) for text in seen) for part in asked.parts]
    if found and all(found):
        return "right"
    if any(found):
        return "half"
    if re.search(asked.wrong, answer["answer"]) or (not asked.parts and answer["confidence"] >= _SURE):
        return "wrong"
    return "useless"


def _marked(source: dict[str, Any]) -> str:
    start = source["char_start"]
    places = source.get("quotes") or []
    return " ".join(source["text"][one["char_start"] - start : one["char_end"] - start] for one in places)


async def answers(
    session: aiohttp.ClientSession, documents: Mapping[str, bytes], questions: Sequence[Asked]
) -> list[tuple[Asked, dict[str, Any]]]:
    """Upload the documents and ask every question."""
    async with session.post("/v1/rag/knowledge-bases", json={"name": "ordinary"}) as made:
        base = str((await made.json())["id"])
    for name, content in documents.items():
        form = aiohttp.FormData()
        form.add_field("file", content, filename=name)
        async with session.post(f"/v1/rag/knowledge-bases/{base}/upload", data=form) as sent:
            assert sent.status == 202, await sent.text()
    await settled(session, base)
    async with session.get(f"/v1/rag/knowledge-bases/{base}/documents") as listed:
        for document in (await listed.json())["items"]:
            assert document["status"] == "completed", document
    body = {"name": "ordinary", "knowledge_base_ids": [base]}
    async with session.post("/v1/rag/pipeline", json=body) as made:
        pipeline = (await made.json())["pipeline_id"]
    found = []
    for asked in questions:
        async with session.post(f"/v1/rag/pipeline/{pipeline}/query", json={"question": asked.text}) as reply:
            found.append((asked, await reply.json()))
    return found


async def main() -> None:
    names = [one for one in sys.argv[1:] if one in SETS] or list(SETS)
    with tempfile.TemporaryDirectory() as folder:
        async with platform(Path(folder), env={"PLATFORM_MODELS_NEARBY": ""}) as served:
            headers = {"Authorization": f"Bearer {await account(served)}"}
            async with aiohttp.ClientSession(served.url, headers=headers) as session:
                for name in names:
                    documents, questions = SETS[name]
                    print_set(name, await answers(session, documents(), questions))


def print_set(name: str, found: Sequence[tuple[Asked, dict[str, Any]]]) -> None:
    """Each verdict, with `--show` the answers, and the figures of the set."""
    counts = Counter(verdict(*one) for one in found)
    for asked, answer in found:
        said = " ".join(answer["answer"].split())[:150] if "--show" in sys.argv else ""
        print(f"{verdict(asked, answer):<16}{answer['confidence']:.2f}  {asked.text}  {said}")
    useful = counts["right"] + counts["refused"]
    print(
        f"{name}: {dict(counts)}, useful {useful / len(found):.0%}, wrong {counts['wrong'] / len(found):.0%}"
    )


if __name__ == "__main__":
    asyncio.run(main())
