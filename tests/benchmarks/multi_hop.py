"""Makes multi-hop questions over short articles about invented people, places and works.

Each article is like the beginning of an encyclopaedia's; each question needs two or three of them, and the
later ones share few words with it: other people were born, wrote, founded as well. The same seed gives the
same set. Two styles: `bridge` describes in long sentences what it asks for, and compares; `chain` strings
relations together. A third, `single`, asks the same articles for what one of them says.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tests.benchmarks.evaluation_sets import DATA

_TRIES = 20
_DATA = json.loads((DATA / "multi_hop.json").read_text(encoding="utf-8"))


@dataclass
class Article:
    """A title and what stands under it; `about` is what questions may say of it without its name."""

    title: str
    kind: str
    facts: dict[str, str] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True)
class HopQuestion:
    """A question and the places of the articles that are needed to answer it."""

    text: str
    needed: tuple[int, ...]
    kind: str


@dataclass(frozen=True)
class MultiHopSet:
    """Articles as (title, text), and questions over them."""

    articles: list[tuple[str, str]]
    questions: list[HopQuestion]

    @cached_property
    def passages(self) -> list[str]:
        """Title and text of each article, as a file of its own would have them."""
        return [f"{title}\n\n{text}" for title, text in self.articles]


class World:
    """People, places, works and bodies that refer to one another."""

    def __init__(self, seed: int, size: int) -> None:
        self.chance = random.Random(seed)
        self.articles: list[Article] = []
        self._titles: set[str] = set()
        self.known: dict[tuple[str, ...], list[Article]] = {}
        pick = self.chance.choice
        towns = [self._add("town", self._town()) for _ in range(size // 9)]
        self.schools = [self._add("school", self._school(pick(towns))) for _ in range(size // 28)]
        for _ in range(size // 3):
            self._add("person", self._person())
        self.people = self._of("person")
        for town in towns:
            self._tell_town(town)
        for school in self.schools:
            self._tell_school(school, pick(towns))
        for at, person in enumerate(self.people):
            self._tell_person(person, at, pick(towns), pick(self.schools))
        for kind, share in (
            ("film", 7),
            ("novel", 10),
            ("album", 10),
            ("company", 14),
            ("band", 16),
            ("building", 16),
            ("club", 20),
            ("series", 20),
        ):
            for _ in range(size // share):
                self._work(kind, pick(towns))

    def _of(self, kind: str) -> list[Article]:
        return [article for article in self.articles if article.kind == kind]

    def _add(self, kind: str, title: str) -> Article:
        tries = 0
        while title in self._titles:
            title = {"person": self._person, "town": self._town}.get(kind, self._work_title)()
            tries += 1
            if tries > _TRIES:  # large worlds use up the short names
                title = f"{title}-{self._surname()}"
        self._titles.add(title)
        self.articles.append(Article(title, kind))
        return self.articles[-1]

    def _person(self) -> str:
        pick = self.chance.choice
        middle = f" {pick('ABCDEFGHJKLMPRST')}." if self.chance.random() < 0.12 else ""
        return f"{pick(_DATA['first_names'])}{middle} {self._surname()}"

    def _surname(self) -> str:
        return "".join(self.chance.choice(syllables) for syllables in _DATA["surnames"])

    def _town(self) -> str:
        return "".join(self.chance.choice(syllables) for syllables in _DATA["towns"])

    def _school(self, town: Article) -> str:
        return self.chance.choice(
            (
                "University of {}",
                "{} Institute of Technology",
                "{} College",
                "{} Conservatory",
                "{} Academy of Arts",
            )
        ).format(town.title)

    def _work_title(self) -> str:
        pick = self.chance.choice
        form = pick(
            (
                "The {a} {n}",
                "{a} {n}",
                "A {n} for {f}",
                "{n} and {m}",
                "The {n} of {t}",
                "{a} {n}s",
                "Beyond the {n}",
            )
        )
        return form.format(
            a=pick(_DATA["adjectives"]),
            n=pick(_DATA["nouns"]),
            m=pick(_DATA["nouns"]),
            f=pick(_DATA["first_names"]),
            t=self._town(),
        )

    def year(self, low: int = 1890, high: int = 2010) -> int:
        return self.chance.randint(low, high)

    def _date(self, year: int) -> str:
        day, month = self.chance.randint(1, 28), self.chance.choice(_DATA["months"])
        return self.chance.choice((f"{day} {month} {year}", f"{month} {day}, {year}"))

    def _tell_town(self, town: Article) -> None:
        pick = self.chance.choice
        country, _ = pick(_DATA["countries"])
        county, river, people = (
            f"{self._town()} County",
            f"the River {self._surname()}",
            self.chance.randint(900, 90_000),
        )
        town.facts = {"country": country, "county": county, "river": river, "population": f"{people:,}"}
        town.text = pick(_DATA["articles"]["town"]).format(
            t=town.title,
            c=county,
            k=country,
            r=river,
            p=f"{people:,}",
            i=pick(("tannery", "shipyard", "weaving mill", "salt works", "paper mill")),
            x=pick(
                ("a cheese fair", "a regatta", "an autumn market", "a lantern festival", "a chess tournament")
            ),
        )

    def _tell_school(self, school: Article, town: Article) -> None:
        year, founder = self.year(1600, 1930), self.chance.choice(self.people).title
        school.facts = {"founded": str(year), "town": town.title, "founder": founder}
        school.text = self.chance.choice(_DATA["articles"]["school"]).format(
            s=school.title,
            t=town.title,
            y=year,
            f=founder,
            n=self.chance.randint(2, 30),
            m=self.chance.randint(3, 12),
        )

    def _tell_person(self, person: Article, at: int, town: Article, school: Article) -> None:
        pick = self.chance.choice
        born = self.year(1880, 1980)
        job = pick(_DATA["jobs"])
        _, people = pick(_DATA["countries"])
        spouse, father = pick(self.people).title, self.people[at - 1 - self.chance.randrange(5)].title
        prize = f"{self._surname()} {pick(('Prize', 'Medal', 'Award', 'Fellowship'))}"
        last = person.title.rsplit(" ", 1)[1]
        person.facts = {
            "job": job, "people": people, "born": str(born), "birthplace": town.title, "school": school.title,
            "spouse": spouse, "father": father, "prize": prize,
        }  # fmt: skip
        first = pick(_DATA["articles"]["person"])
        parts = [pick(choices) for choices in _DATA["life"]]
        if "born in {t}" not in first and "in {t})" not in first:
            parts[2] = "Born as the second child of {f}, {l} grew up in {t}."
        self.chance.shuffle(parts)
        written = " ".join([first, *parts]).format(
            p=person.title,
            l=last,
            d=self._date(born),
            e=self._date(born + self.chance.randint(40, 90)),
            t=town.title,
            n=people,
            j=job,
            y=(born // 10 + 3) * 10,
            s=school.title,
            w=spouse,
            f=father,
            z=prize,
            y2=born + 45,
        )
        person.text = written.replace("the The", "the").replace(" a A", " an A").replace(" a I", " an I")

    def _work(self, kind: str, town: Article) -> None:
        pick = self.chance.choice
        if kind in ("film", "novel", "album", "series"):
            title = self._work_title()
            if title in self._titles or self.chance.random() < 0.15:
                title = f"{title} ({kind if kind != 'series' else 'TV series'})"
        elif kind == "company":
            title = f"{self._surname()} {pick(('Works', 'Industries', 'Company', 'Instruments', 'Brothers'))}"
        elif kind == "band":
            title = (
                f"The {pick(_DATA['adjectives'])} {pick(_DATA['nouns'])}s"
                if self.chance.random() < 0.7
                else f"{pick(_DATA['nouns'])} {pick(_DATA['nouns'])}"
            )
        elif kind == "club":
            title = f"{self._town()} {pick(('Rovers', 'United', 'Athletic', 'Wanderers'))}"
        else:
            title = f"{self._surname()} {pick(('Hall', 'Tower', 'Bridge', 'Theatre', 'House'))}"
        article = self._add(kind, title)
        bare = article.title.split(" (")[0]
        a, b, c = (person.title for person in self.chance.sample(self.people, 3))
        year, country = self.year(1900, 2015), pick(_DATA["countries"])
        role = f"{pick(_DATA['first_names'])} {self._surname()}"
        article.facts = {
            "year": str(year),
            "a": a,
            "b": b,
            "town": town.title,
            "role": role,
            "people": country[1],
        }
        article.text = pick(_DATA["articles"][kind]).format(
            x=bare,
            y=year,
            n=country[1],
            g=pick(_DATA["genres"]),
            a=a,
            b=b,
            c=c,
            r=role,
            t=town.title,
            m=pick(_DATA["products"]),
        )


def make(style: str, *, seed: int = 1, size: int = 1500, questions: int = 200) -> MultiHopSet:
    world = World(seed, size)
    makers = {"bridge": _bridge, "chain": _chain, "single": _single}
    places = {article.title: at for at, article in enumerate(world.articles)}
    made = {question.text: question for question in _several(makers[style], world, places, questions)}
    return MultiHopSet([(one.title, one.text) for one in world.articles], list(made.values()))


Maker = Callable[[World, dict[str, int]], HopQuestion]


def _several(maker: Maker, world: World, places: dict[str, int], count: int) -> Iterator[HopQuestion]:
    for _ in range(count):
        yield maker(world, places)


def _role(world: World, article: Article) -> tuple[str, str]:
    """A description of a person by a work, and the person's name."""
    words, fact = world.chance.choice(_DATA["roles"][article.kind])
    bare = article.title.split(" (")[0]
    return words.format(
        x=bare, r=article.facts["role"], n=article.facts["people"], y=article.facts["year"]
    ), article.facts[fact]


def _some(world: World, kinds: tuple[str, ...] = tuple(_DATA["roles"])) -> Article:
    if kinds not in world.known:
        world.known[kinds] = [article for article in world.articles if article.kind in kinds]
    return world.chance.choice(world.known[kinds])


def _bridge(world: World, places: dict[str, int]) -> HopQuestion:
    """Two passages: a work and a person behind it, a person and a place or school, or two to be compared."""
    chance, work = world.chance, _some(world)
    if chance.random() < 0.2:
        other = _some(world, (work.kind,))
        form = chance.choice(
            (
                "Which came first, {} or {}?",
                "Which was made earlier: {} or {}?",
                "Were {} and {} made in the same year?",
            )
        )
        text = form.format(work.title.split(" (")[0], other.title.split(" (")[0])
        return HopQuestion(text, tuple({places[work.title], places[other.title]}), "comparison")
    if chance.random() < 0.3:
        person = chance.choice(world.people)
        fact, _, form = chance.choice(_DATA["further"])
        target = person.facts[fact]
        return HopQuestion(form.format(person.title), (places[person.title], places[target]), "bridge")
    words, name = _role(world, work)
    form = chance.choice(_DATA["asked"])[chance.randrange(2)]
    return HopQuestion(form.format(words), (places[work.title], places[name]), "bridge")


def _chain(world: World, places: dict[str, int]) -> HopQuestion:
    """A work, a person behind it, and often one place, school or relative more."""
    chance, work = world.chance, _some(world)
    words, name = _role(world, work)
    if chance.random() < 0.6:
        form = chance.choice(_DATA["asked"])[chance.randrange(2)]
        return HopQuestion(form.format(words), (places[work.title], places[name]), "two")
    fact, _, form = chance.choice(_DATA["further"])
    target = world.articles[places[name]].facts[fact]
    needed = (places[work.title], places[name], places[target])
    return HopQuestion(form.format(words), tuple(dict.fromkeys(needed)), "three")


def _single(world: World, places: dict[str, int]) -> HopQuestion:
    chance = world.chance
    if chance.random() < 0.5:
        person = chance.choice(world.people)
        form = chance.choice(_DATA["asked"])[chance.randrange(2)]
        return HopQuestion(form.format(person.title), (places[person.title],), "single")
    if chance.random() < 0.5:
        person = chance.choice(world.people)
        known = person.facts
        form = chance.choice(
            (
                "Which {people} {job} grew up in {birthplace}?",
                "Who studied at the {school} and received the {prize}?",
                "Which {job} was married to {spouse}?",
                "Name the {people} {job} whose father was {father}.",
            )
        )
        return HopQuestion(form.format(**known), (places[person.title],), "described")
    work = _some(world)
    form = chance.choice(("Who was behind {}?", "What is {}?", "When was {} made?", "Tell me about {}."))
    return HopQuestion(form.format(work.title), (places[work.title],), "single")
