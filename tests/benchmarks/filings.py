"""Invented annual reports of the shape and length of real ones; questions with the page of their evidence.

Companies over three years: a cover, risk factors that all of them share, a discussion of results, statements
with the columns of three years, notes. What a report says of a year stands in the next one's columns, too;
few pages name the company. The same companies have the same reports. Weights are chosen by the questions
about `companies`; those about `unseen` companies are worded otherwise, and only tell what was reached.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from builtin_plugins.documents.api import Block, Heading
from tests.benchmarks.evaluation_sets import DATA

YEARS = (2021, 2022, 2023)
_RISK_PAGES = 4
_NOTE_PAGES = 6
_DATA = json.loads((DATA / "filings.json").read_text(encoding="utf-8"))


class Filing(NamedTuple):
    """A report as its file name and its pages; `pages` are the numbers of those that questions are about."""

    name: str
    company: str
    year: int
    blocks: Sequence[Block]
    pages: Mapping[str, Sequence[int]]


class FilingQuestion(NamedTuple):
    """A question with the document and pages of its evidence, and whether it names the document."""

    text: str
    document: str
    pages: Sequence[int]


class _Report:
    """One report, page by page."""

    def __init__(self, company: Mapping[str, Any], year: int, figures: Figures) -> None:
        self.company, self.year, self.figures = company, year, figures
        self.chance = random.Random(f"{company['short']} {year}")
        self.blocks: list[Block] = []
        self.pages: dict[str, list[int]] = {}

    def page(self, key: str, section: str, heading: str, *parts: str) -> None:
        number = len(self.blocks) + 1
        top = f"Table of Contents\n\n{section}\n\n{heading}\n\n"
        at = top.index(section)
        headings = [Heading(1, section, at), Heading(2, heading, top.rindex(heading))]
        text = top + "\n\n".join(filter(None, parts)) + f"\n\n{number}"
        self.blocks.append(Block(text, number, headings=headings))
        self.pages.setdefault(key, []).append(number)

    def some(self, name: str, count: int) -> str:
        return "\n\n".join(self.chance.sample(_DATA[name], count))

    def table(self, rows: Sequence[str], most: int = 3) -> str:
        """Rows of a statement, with the columns of the last years."""
        years = [self.year - back for back in range(most)]
        lines = [f"(In {self.company['unit']})\t" + "\t".join(map(str, years))]
        for row in rows:
            values = [self.figures.of(row, year) for year in years]
            lines.append(f"{row}\t" + "\t".join(f"{value:,}" for value in values))
        return "\n".join(lines)


class Figures:
    """The figures of a company, the same in every report."""

    def __init__(self, company: str) -> None:
        self._company = company

    def of(self, row: str, year: int) -> int:
        return random.Random(f"{self._company} {row} {year}").randint(110, 39_999)

    def share(self, row: str, year: int) -> str:
        return f"{random.Random(f'{self._company} {row} {year}').randint(110, 349) / 10}%"


INCOME = (
    "Net sales",
    "Cost of sales",
    "Gross profit",
    "Selling, general and administrative expenses",
    "Research and development expenses",
    "Operating income",
    "Interest expense",
    "Income before income taxes",
    "Provision for income taxes",
    "Net income",
    "Net income attributable to noncontrolling interest",
)
BALANCE = (
    "Cash and cash equivalents",
    "Marketable securities",
    "Accounts receivable, net",
    "Inventories",
    "Total current assets",
    "Property, plant and equipment, net",
    "Goodwill",
    "Intangible assets, net",
    "Total assets",
    "Accounts payable",
    "Short-term borrowings and current portion of long-term debt",
    "Total current liabilities",
    "Long-term debt",
    "Retained earnings",
    "Total equity",
)
CASH = (
    "Net income",
    "Depreciation and amortization",
    "Stock-based compensation expense",
    "Deferred income taxes",
    "Accounts receivable",
    "Net cash provided by operating activities",
    "Purchases of property, plant and equipment",
    "Acquisitions, net of cash acquired",
    "Net cash used in investing activities",
    "Proceeds from debt",
    "Repayment of debt",
    "Purchases of treasury stock",
    "Dividends paid to shareholders",
    "Net cash used in financing activities",
)


def _front(one: _Report) -> None:
    company, year = one.company, one.year
    one.blocks.append(
        Block(
            f"UNITED STATES SECURITIES AND EXCHANGE COMMISSION\n\nForm 10-K\n\nAnnual report for the fiscal "
            f"year ended December 31, {year}\n\n{company['name']}\n\n(Exact name of registrant as specified "
            f"in its charter)\n\nIndicate by check mark whether the registrant is a large accelerated filer.",
            1,
        )
    )
    one.page(
        "business",
        "Item 1. Business",
        "General",
        f"{company['short']} develops, manufactures and sells {company['product']}. Our customers are mainly "
        f"{company['customer']}.",
        "We compete on quality, service and price. Our business is seasonal to a small extent.",
        one.some("filler", 3),
    )
    one.page(
        "employees",
        "Item 1. Business",
        "Human Capital",
        f"At December 31, {year}, the Company employed {one.figures.of('people', year):,} people, of whom "
        f"{one.figures.share('abroad', year)} were outside the United States.",
        "We offer competitive wages, training and benefits, and survey our employees every year.",
        one.some("filler", 2),
    )
    for _ in range(_RISK_PAGES):
        one.page("risks", "Item 1A. Risk Factors", "Risks Related to Our Business", one.some("risks", 8))
    places = "\n".join(f"{place}\tManufacturing\tOwned" for place in company["places"])
    one.page(
        "properties",
        "Item 2. Properties",
        "Principal Facilities",
        "Our principal plants are listed below; we believe that they are suitable and well maintained.",
        f"Location\tUse\tTenure\n{places}",
        one.some("filler", 2),
    )
    one.page(
        "legal",
        "Item 3. Legal Proceedings",
        "Pending Matters",
        f"The Company is a party to {company['case']}. We have accrued {one.figures.of('accrued', year):,} "
        "for it.",
        one.some("risks", 3),
    )


def _discussion(one: _Report) -> None:
    item, year = "Item 7. Management's Discussion and Analysis", one.year
    one.page(
        "overview",
        item,
        "Overview",
        f"Net sales in {year} were {one.figures.of('Net sales', year):,} {one.company['unit']} compared with "
        f"{one.figures.of('Net sales', year - 1):,} in {year - 1}.",
        one.some("filler", 4),
    )
    causes = ["higher prices of raw materials", "a better mix of products", "costs of a restructuring plan"]
    one.page(
        "margin",
        item,
        "Results of Operations",
        f"Operating margin was {one.figures.share('margin', year)} of net sales in {year}, after "
        f"{one.figures.share('margin', year - 1)} in {year - 1}. The change was mostly due to "
        f"{causes[year % 3]} and to {causes[(year + 1) % 3]}, partly offset by foreign currency.",
        one.table(INCOME[:6], 2),
        one.some("filler", 2),
    )
    one.page(
        "segments",
        item,
        "Performance by Business Segment",
        one.table([f"{segment} net sales" for segment in one.company["segments"]]),
        one.table([f"{segment} operating income" for segment in one.company["segments"]]),
        one.some("filler", 2),
    )
    one.page(
        "liquidity",
        item,
        "Liquidity and Capital Resources",
        f"Net cash provided by operating activities, capital expenditures and free cash flow are reviewed by "
        f"management. We expect capital expenditures of {one.figures.of('planned', year):,} in {year + 1}.",
        one.some("filler", 4),
    )
    one.page(
        "market",
        "Item 7A. Market Risk",
        "Interest Rates and Currencies",
        one.some("risks", 3),
        one.some("filler", 3),
    )


def _statements(one: _Report) -> None:
    item, company, year = "Item 8. Financial Statements", one.company, one.year
    title = f"{company['name']} and Subsidiaries"
    one.page(
        "auditor",
        item,
        "Report of Independent Registered Public Accounting Firm",
        f"To the Shareholders and the Board of Directors of {company['name']}",
        "In our opinion, the consolidated financial statements present fairly, in all material respects, the "
        "financial position of the Company.",
        f"/s/ {company['auditor']}\n\nFebruary 9, {year + 1}",
        one.some("filler", 3),
    )
    for key, heading, rows, most in (
        ("income", "Consolidated Statement of Income", INCOME, 3),
        ("balance", "Consolidated Balance Sheet", BALANCE, 2),
        ("cash", "Consolidated Statement of Cash Flows", CASH, 3),
    ):
        one.page(key, item, heading, title, one.table(rows, most), _DATA["filler"][-1])


def _notes(one: _Report) -> None:
    item, figures, year = "Notes to Consolidated Financial Statements", one.figures, one.year
    for number in range(1, _NOTE_PAGES + 1):
        heading = f"Note {number}. Significant Accounting Policies"
        one.page("policies", item, heading, one.some("filler", 9))
    one.page(
        "tax",
        item,
        "Income Taxes",
        f"The effective tax rate was {figures.share('tax', year)} in {year} and "
        f"{figures.share('tax', year - 1)} in {year - 1}; the statutory rate was 21.0%.",
        one.table(("Current income taxes", "Deferred income taxes", "Provision for income taxes")),
        one.some("filler", 3),
    )
    one.page(
        "debt",
        item,
        "Long-Term Debt and Short-Term Borrowings",
        one.table(
            ("Senior notes due 2026", "Senior notes due 2031", "Commercial paper", "Long-term debt"), 2
        ),
        f"The revolving credit facility of {figures.of('facility', year):,} expires in {year + 4}.",
        one.some("filler", 3),
    )
    one.page(
        "pension",
        item,
        "Pension and Postretirement Benefits",
        one.table(
            ("Service cost", "Interest cost", "Expected return on plan assets", "Net periodic benefit cost")
        ),
        one.some("filler", 3),
    )
    one.page(
        "geography",
        item,
        "Net Sales by Geographic Area",
        one.table(("United States", "Europe, Middle East and Africa", "Asia", "Total net sales")),
        one.some("filler", 3),
    )


_PARTS: Sequence[Callable[[_Report], None]] = (_front, _discussion, _statements, _notes)

_ASKED = {
    "By its statement of cash flows alone, how many {unit} of USD did {short} spend on capital expenditure "
    "in FY{year}?": "cash",
    "You advise investors in shares. From what the balance sheet says, how high was the net PP&E of {short} "
    "when FY{year} ended?": "balance",
    "What is {short}'s effective tax rate for {year}?": "tax",
    "How many people did {short} employ at the end of FY{year}?": "employees",
    "Which segment of {short} had the highest sales in FY{year}?": "segments",
    "What drove the change of operating margin of {short} as of FY{year}?": "margin",
    "How much did {short} pay in dividends in {year}?": "cash",
    "When does the credit facility of {short} expire, as of FY{year}?": "debt",
    "Which lawsuits does {short} face, according to its {year} report?": "legal",
    "What was the COGS of {short} in {year}, as its P&L statement says?": "income",
    "How much did {short} sell in Asia in FY{year}?": "geography",
    "Where are the plants of {short}, as of {year}?": "properties",
    "Who audited the {year} accounts of {short}?": "auditor",
    "What pension cost did {short} have in FY{year}?": "pension",
    "How much goodwill was on {short}'s balance sheet at the end of {year}?": "balance",
}


_ASKED_PLAINLY = {
    "What was {short}'s revenue in {year}?": "income",
    "Who audits {short}? I mean the {year} report.": "auditor",
    "How much tax did {short} pay on its income in {year}, in per cent?": "tax",
    "how many employees did {short} have in {year}": "employees",
    "Is {short} being sued? ({year})": "legal",
    "What did {short} invest in plants and machines in {year}?": "cash",
    "How much long-term debt does {short} have after {year}?": "debt",
    "Why did {short} earn more or less on its sales in {year}?": "margin",
    "{short} {year} inventories": "balance",
    "Where does {short} make its products, by the report of {year}?": "properties",
    "How does {short} split its {year} sales over regions of the world?": "geography",
    "Which of {short}'s businesses earned most in {year}?": "segments",
}


def filings(companies: str = "companies") -> list[Filing]:
    """The reports of `companies` or of `unseen` ones."""
    made: list[Filing] = []
    for company in _DATA[companies]:
        for year in YEARS:
            report = _Report(company, year, Figures(company["short"]))
            for part in _PARTS:
                part(report)
            name = f"{company['short'].replace(' & ', '').upper()}_{year}_10K.pdf"
            made.append(Filing(name, company["short"], year, report.blocks, report.pages))
    return made


def questions(made: Sequence[Filing], companies: str = "companies") -> Iterator[FilingQuestion]:
    """A third of the combinations: each question of every company, in one of the years."""
    units = {company["short"]: company["unit"] for company in _DATA[companies]}
    asked = _ASKED if companies == "companies" else _ASKED_PLAINLY
    for at, one in enumerate(made):
        for number, (question, key) in enumerate(asked.items()):
            if (at + number) % len(YEARS) == 0:
                text = question.format(short=one.company, year=one.year, unit=units[one.company])
                yield FilingQuestion(text, one.name, one.pages[key])
