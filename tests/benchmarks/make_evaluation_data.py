"""Writes the two generated evaluation sets, `codes` and `handbook`, the same on every run.

`python -m tests.benchmarks.make_evaluation_data`. The third set, `paraphrase`, is written by hand.

- codes: a maintenance archive of near-identical entries; questions quote the identifier of one.
- handbook: the same house rules for fourteen offices; questions name the office and paraphrase the rule.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

DATA = Path(__file__).parent / "data"

MACHINES = (
    "bottling line",
    "palletiser",
    "steam boiler",
    "label printer",
    "conveyor belt",
    "cooling tower",
    "packing robot",
    "air compressor",
    "sorting gate",
    "stretch wrapper",
    "dosing pump",
    "heat exchanger",
    "checkweigher",
    "cap feeder",
    "shrink tunnel",
    "vacuum sealer",
    "paint booth",
    "forklift charger",
    "water softener",
    "metal detector",
)
ANY_ERROR = (
    (
        "the motor current exceeds its limit",
        "let the drive cool for ten minutes and check the gearbox for blockage",
    ),
    (
        "the pressure falls below the set value",
        "look for leaks at the couplings and replace the inlet filter",
    ),
    ("the light barrier is interrupted for too long", "wipe both lenses and realign the reflector"),
    (
        "the temperature sensor reports an open circuit",
        "measure the resistance and replace the cable if it is infinite",
    ),
    ("the emergency stop has been pressed", "release the button, acknowledge on the panel and start anew"),
    ("the encoder loses its reference position", "run the homing routine with an empty machine"),
    ("the lubricant level is too low", "top up with the grease named on the plate and reset the counter"),
    ("communication with the controller times out", "check the network plug and the station address"),
    ("the safety door is not closed", "close the door and inspect the latch for wear"),
    ("the reservoir is empty", "refill it and bleed the line until no bubbles appear"),
    ("vibration exceeds the alarm threshold", "tighten the foundation bolts and balance the rotor"),
    ("the firmware checksum does not match", "load the release from the service stick once more"),
)
PARTS = (
    "bearing",
    "filter kit",
    "drive belt",
    "seal set",
    "proximity switch",
    "solenoid valve",
    "encoder",
    "fan wheel",
    "fuse module",
    "gripper pad",
    "nozzle",
    "relay",
    "touch panel",
    "coupling",
    "hose assembly",
)
REMARKS = (
    "Cause found by the night shift.",
    "The supplier was informed.",
    "No further loss of production.",
    "To be watched during the next inspection.",
    "Second occurrence this year.",
    "Closed after a test run of one hour.",
)

OFFICES = (
    "Lisbon",
    "Rotterdam",
    "Graz",
    "Turku",
    "Gdansk",
    "Bilbao",
    "Leeds",
    "Lyon",
    "Bergen",
    "Trieste",
    "Ghent",
    "Aarhus",
    "Cork",
    "Brno",
)


@dataclass(frozen=True)
class Topic:
    """A rule with its wordings ({office} and {number} are filled in), and questions that avoid its words."""

    general: str
    wordings: tuple[str, str]
    questions: tuple[str, str]
    numbers: tuple[int, int]


TOPICS = (
    Topic(
        "Staff may park on company ground as far as bays are "
        "available; a badge must lie behind the windscreen.",
        (
            "Parking at {office}: {number} bays behind the building are "
            "given by lot each quarter; vehicles without "
            "a badge are towed at the owner's expense.",
            "The garage in {office} opens at {number} minutes past five; "
            "each bay is assigned to one number plate.",
        ),
        (
            "where do I put my car in {office}",
            "driving to the {office} site, is there space to leave the vehicle",
        ),
        (10, 55),
    ),
    Topic(
        "Animals are welcome where neighbours at the desks agree and no allergy is known.",
        (
            "In {office}, dogs may come along on Fridays, at most "
            "{number} at a time, on a lead and away from the "
            "canteen.",
            "{office} allows quiet animals on the {number}th floor only; "
            "the owner cleans up and is liable for damage.",
        ),
        ("can I bring my puppy to {office}", "are pets tolerated at the office in {office}"),
        (2, 9),
    ),
    Topic(
        "Guests are announced a day ahead and accompanied at all times.",
        (
            "Visitors to {office} sign in at reception, show a passport or "
            "identity card and receive a yellow badge, "
            "valid for {number} hours.",
            "Guests in {office} must be announced by noon of the previous "
            "day; the host fetches them from gate {number}.",
        ),
        (
            "a customer wants to come and see us in {office}, what must I do",
            "inviting somebody from outside to {office}",
        ),
        (3, 12),
    ),
    Topic(
        "The company subsidises a warm meal on each working day.",
        (
            "The canteen in {office} serves lunch from half past eleven; "
            "a main course costs {number} tokens and a "
            "vegan dish is always offered.",
            "{office} has no kitchen of its own: meals are delivered at "
            "noon when ordered by {number} minutes past nine.",
        ),
        (
            "what are the options for eating at midday in {office}",
            "is there something hot to eat in {office}",
        ),
        (4, 50),
    ),
    Topic(
        "On hearing the siren, leave everything, take the stairs and go to the assembly point.",
        (
            "Evacuation in {office}: leave by staircase {number}, never "
            "by lift, and gather at the fountain across "
            "the street, where wardens count heads.",
            "If the alarm sounds in {office}, wardens in orange vests lead "
            "you to assembly point {number} on the quay.",
        ),
        (
            "there is a fire in {office}, where do we go",
            "in an emergency, how do we get out of the {office} building",
        ),
        (1, 8),
    ),
    Topic(
        "A password is changed by its owner only; nobody else may ask for it.",
        (
            "Colleagues in {office} who are locked out of their "
            "workstation call extension {number} and answer two "
            "security questions.",
            "The help desk for {office} resets credentials on "
            "weekdays; bring your badge to counter {number}.",
        ),
        ("I can't sign in to my computer in {office}", "forgot my login, whom do I ask in {office}"),
        (110, 990),
    ),
    Topic(
        "Expenses are refunded against original receipts within thirty days.",
        (
            "Travel claims from {office} go to bookkeeping by the "
            "{number}th of the month, with receipts glued to form "
            "T2.",
            "In {office}, outlays up to {number} euros are paid back in "
            "cash by the front desk, larger ones by transfer.",
        ),
        (
            "how do I get money back for a train ticket, {office}",
            "I paid for a hotel on a business trip from {office}",
        ),
        (5, 60),
    ),
    Topic(
        "Working from home is possible on up to two days a week if the duties permit.",
        (
            "Teams in {office} agree on a common day of presence, the rest "
            "may be done remotely, at most {number} days "
            "a month.",
            "Remote work in {office} is granted after {number} weeks of "
            "employment, on written request to the lead.",
        ),
        ("do I have to come in every day in {office}", "may I stay home with my laptop, {office} team"),
        (4, 12),
    ),
    Topic(
        "Waste is separated into paper, glass, plastic, organic matter and the rest.",
        (
            "In {office}, batteries and toner belong in the red bins "
            "beside lift {number}; paper is collected on "
            "Wednesdays.",
            "Recycling at {office}: bring glass and scrap electronics to "
            "yard {number}, never into the grey sacks.",
        ),
        (
            "where can I throw away used electronics in {office}",
            "getting rid of rubbish properly at {office}",
        ),
        (1, 6),
    ),
    Topic(
        "Mothers who breastfeed and anyone who needs rest find a quiet room on each site.",
        (
            "{office} keeps a quiet room with a couch and a refrigerator, "
            "number {number}; the key hangs at reception.",
            "Those who feel unwell or nurse a child in {office} may use "
            "room {number}, which locks from inside.",
        ),
        ("where can I pump milk in {office}", "need to lie down for a while at the {office} site"),
        (101, 420),
    ),
    Topic(
        "Parcels of a private nature are not accepted by the post room.",
        (
            "The post room in {office} closes at {number} minutes past "
            "four; registered letters are signed for by the "
            "porter.",
            "Deliveries to {office} use ramp {number}; couriers ring twice and wait for the porter.",
        ),
        ("I am expecting a package at {office}", "sending a letter from the {office} branch"),
        (5, 55),
    ),
    Topic(
        "Cyclists find covered stands and showers on every site.",
        (
            "Bicycles in {office} are kept in the locked cage in the "
            "basement; {number} sockets charge electric ones.",
            "{office} lends {number} folding bikes for errands; helmets hang beside the pump.",
        ),
        ("coming to {office} on two wheels", "where do I chain up my e-bike in {office}"),
        (4, 40),
    ),
    Topic(
        "Employees who fall ill report by nine in the morning and send a certificate from the fourth day on.",
        (
            "Sick colleagues in {office} call their lead before {number} "
            "minutes to nine and mail the certificate to "
            "personnel.",
            "In {office}, absence through illness is entered in the "
            "portal; after {number} days a certificate is due.",
        ),
        (
            "I woke up with a fever, who needs to know in {office}",
            "being unwell and missing work at {office}",
        ),
        (2, 30),
    ),
    Topic(
        "Each employee has a yearly budget for learning, which does not carry over.",
        (
            "Courses for {office} are approved by the lead up to {number} "
            "hundred euros a year; languages are taught in "
            "house on Tuesdays.",
            "Training at {office} takes place in the annex; {number} "
            "seats are reserved for newcomers each term.",
        ),
        (
            "does the firm pay for a class I want to take, {office}",
            "improving my skills while employed in {office}",
        ),
        (5, 25),
    ),
)


@dataclass
class Archive:
    """Passages and graded questions as they are gathered: 2 answers the question, 1 helps."""

    passages: list[dict[str, str]] = field(default_factory=list)
    questions: list[dict[str, object]] = field(default_factory=list)

    def passage(self, text: str) -> str:
        name = f"p{len(self.passages):03d}"
        self.passages.append({"id": name, "text": text})
        return name

    def question(self, text: str, full: Sequence[str], partial: Sequence[str] = ()) -> None:
        relevant = dict.fromkeys(partial, 1) | dict.fromkeys(full, 2)
        self.questions.append({"question": text, "relevant": relevant})

    def write(self, file: Path) -> None:
        lines = (json.dumps(entry, ensure_ascii=False) for entry in (*self.passages, *self.questions))
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def codes() -> Archive:
    chance, archive = random.Random(4711), Archive()
    identifiers = _identifiers(chance)
    errors = [_error(archive, chance, next(identifiers)) for _ in range(220)]
    for _ in range(160):
        _part(archive, chance, next(identifiers))
    for code, definition in chance.sample(errors, 70):
        incidents = [_incident(archive, chance, code, next(identifiers)) for _ in range(chance.randint(0, 2))]
        asked = chance.choice(
            ("{}", "what does error {} mean", "how do I clear fault {}?", "machine stopped with {}")
        )
        archive.question(asked.format(code), [definition], incidents)
    return archive


def _identifiers(chance: random.Random) -> Iterator[str]:
    """Codes of three styles, each used once; many differ in a single digit."""
    used: set[str] = set()
    while True:
        letters = "".join(chance.choices("BCDFKMPRTX", k=2))
        number = chance.randint(100, 499)
        style = chance.choice(("{l}-{n}", "{l}{n}", "{l}-{n}-{x}"))
        code = style.format(l=letters, n=number, x=chance.choice("ABC"))
        if code not in used:
            used.add(code)
            yield code


def _error(archive: Archive, chance: random.Random, code: str) -> tuple[str, str]:
    machine, (fault, remedy) = chance.choice(MACHINES), chance.choice(ANY_ERROR)
    wording = chance.choice(
        (
            "Error {code} ({machine}): {fault}. Remedy: {remedy}.",
            "{code} is shown on the {machine} when {fault}. To clear it, {remedy}.",
            "Message {code}. The {machine} stops because {fault}; {remedy} before it is started again.",
        )
    )
    return code, archive.passage(wording.format(code=code, machine=machine, fault=fault, remedy=remedy))


def _part(archive: Archive, chance: random.Random, code: str) -> None:
    machine, part, days = chance.choice(MACHINES), chance.choice(PARTS), chance.randint(2, 60)
    other = chance.choice(MACHINES)
    text = (
        f"Spare part {code}: {part} for the {machine}, delivery within {days} days. It also fits the {other}."
    )
    asked = chance.choice(("{code}", "which machine takes part {code}", "delivery time of {part} {code}"))
    name = archive.passage(text)
    if chance.random() < 0.3:
        archive.question(asked.format(code=code, part=part), [name])


def _incident(archive: Archive, chance: random.Random, code: str, ticket: str) -> str:
    machine, minutes = chance.choice(MACHINES), chance.randint(5, 240)
    return archive.passage(
        f"Ticket {ticket}: {machine} halted for {minutes} minutes after {code} appeared. "
        f"{chance.choice(REMARKS)}"
    )


def handbook() -> Archive:
    chance, archive = random.Random(815), Archive()
    asked: list[tuple[str, str, str]] = []
    for topic in TOPICS:
        general = archive.passage(f"All sites: {topic.general}")
        for office in OFFICES:
            number = chance.randint(*topic.numbers)
            name = archive.passage(chance.choice(topic.wordings).format(office=office, number=number))
            asked.append((chance.choice(topic.questions).format(office=office), name, general))
    for question, name, general in chance.sample(asked, 90):
        archive.question(question, [name], [general])
    return archive


def main() -> None:
    DATA.mkdir(exist_ok=True)
    codes().write(DATA / "codes.jsonl")
    handbook().write(DATA / "handbook.jsonl")


if __name__ == "__main__":
    main()
