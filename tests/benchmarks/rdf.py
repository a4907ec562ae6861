"""What RDF and SPARQL cost over a knowledge base of many documents, each with its own graph.

`python -m tests.benchmarks.rdf [documents]` (20,000 by default): the first query, which fills the embedded
store; then queries of several kinds; then the first query after one document more, and after one less; and
how long it takes until the deleted one has left the disk. Seconds are of the clock; processor seconds are
those of the API's process, and of the child processes of low priority.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from builtin_plugins.graph_rag.building.documents import build
from builtin_plugins.graph_rag.building.rule_engine import rules
from builtin_plugins.graph_rag.models import Entity
from builtin_plugins.graph_rag.storing.writing import Origin, drop_of_document, write_graph
from builtin_plugins.rag import api as rag
from builtin_plugins.rag.models import Document
from kernel.sdk import Unit, utc_now
from kernel.testing import Actor, Running, eventually, platforms, somebody
from tests.benchmarks.multi_hop import make
from tests.benchmarks.shares import shares
from tests.builtin_plugins.rag.rag_support import make_base
from tests.fakes.hash_embeddings import HashEmbeddings

DOCUMENTS = 20_000
AT_ONCE = 500
ROUNDS = 15
SECRET = "Quendolina Vestergaard"
PREFIXES = (
    "PREFIX skos: <http://www.w3.org/2004/02/skos/core#> PREFIX g: <https://platform.dev/ns/graph-rag#> "
    "PREFIX prov: <http://www.w3.org/ns/prov#> PREFIX s: <https://schema.org/> "
)
QUERIES = {
    "one name, default graph": "SELECT ?e WHERE {{ ?e skos:prefLabel '{name}' }}",
    "documents of a name, default graph": (
        "SELECT DISTINCT ?id WHERE {{ ?e skos:prefLabel '{name}' . ?m g:names ?e ;"
        " prov:wasDerivedFrom/s:isPartOf/s:identifier ?id }}"
    ),
    "neighbours, default graph": (
        "SELECT DISTINCT ?n WHERE {{ ?e skos:prefLabel '{name}' . ?e g:coOccursWith ?o ."
        " ?o skos:prefLabel ?n }}"
    ),
    "which graphs know a name, GRAPH ?g": "SELECT ?g WHERE {{ GRAPH ?g {{ ?e skos:prefLabel '{name}' }} }}",
    "the ten names in most documents": (
        "SELECT ?n (COUNT(?d) AS ?c) WHERE {{ ?m g:names ?e ; prov:wasDerivedFrom/s:isPartOf ?d ."
        " ?e skos:prefLabel ?n }} GROUP BY ?n ORDER BY DESC(?c) LIMIT 10"
    ),
}


async def fill(running: Running, base: str, texts: Sequence[str]) -> None:
    """Documents with their graphs, without files and vectors, which SPARQL does not see."""
    extractor = rules()
    for at in range(0, len(texts), AT_ONCE):
        part = list(enumerate(texts[at : at + AT_ONCE], at))

        def write(unit: Unit, part: list[tuple[int, str]] = part) -> None:
            for number, text in part:
                _document(unit, base, number)
                passage = rag.Passage(text, "", 0.0, f"p{number}", "d", char_end=len(text))
                built = build(extractor, [passage], relationships=True)
                origin = Origin("", f"d{number}", knowledge_base_id=base, title=f"{number}.txt")
                write_graph(unit, origin, built, extractor.name, relationships=True)

        await running.platform.database.write(write)


def _document(unit: Unit, base: str, number: int) -> None:
    fields = {"content_type": "text/plain", "size_bytes": 1, "sha256": f"{number:064}", "status": "completed"}
    made = Document(id=f"d{number}", knowledge_base_id=base, filename=f"{number}.txt", **fields)
    made.completed_at = utc_now()
    unit.session.add(made)
    unit.session.flush()


async def ask(actor: Actor, query: str) -> int:
    while True:
        answer = await actor.post("/v1/graph-rag/sparql", json={"query": PREFIXES + query})
        if answer.status == 200:
            return len(answer.json()["results"]["bindings"])
        if answer.status == 400:
            return -1
        assert answer.status == 503, answer.body


async def timed(actor: Actor, query: str) -> str:
    spent = time.process_time()
    async with shares({"all": lambda: (os.getpid(),)}) as every:
        rows = await ask(actor, query)
    spent = time.process_time() - spent
    children = every.cores["all"] * every.seconds - spent
    return (
        f"{every.seconds:.2f} s, {spent:.2f} s of the process, {children:.2f} s of its children ({rows} rows)"
    )


async def median(actor: Actor, query: str) -> str:
    found, rows, before = [], 0, time.process_time()
    for _ in range(ROUNDS):
        started = time.perf_counter()
        rows = await ask(actor, query)
        found.append(time.perf_counter() - started)
        if found[-1] > 5:
            break
    spent = (time.process_time() - before) / len(found)
    told = f"{rows} rows" if rows >= 0 else "refused as too expensive"
    return f"{sorted(found)[len(found) // 2] * 1000:.0f} ms, {spent * 1000:.0f} ms of the process ({told})"


async def bench(folder: Path, count: int) -> None:
    made = make("bridge", size=int(count / 1.12), questions=1)
    texts = made.passages[:count]
    async with platforms(folder) as start:
        running: Running = await start("rag", "graph_rdf", HashEmbeddings())
        ann = await somebody(running)
        base = await make_base(ann, graph=True)
        await fill(running, base, texts)
        name = await running.platform.database.read(a_name)
        print(f"{len(texts)} documents", flush=True)
        lookup = QUERIES["one name, default graph"].format(name=name)
        print(f"first query, which fills the store: {await timed(ann, lookup)}", flush=True)
        print(f"on the disk: {size_of(folder) / 1e6:.0f} MB", flush=True)
        for what, query in QUERIES.items():
            print(f"{what}: {await median(ann, query.format(name=name))}", flush=True)
        await fill_one(running, base, len(texts))
        print(f"first query after one document more: {await timed(ann, lookup)}", flush=True)
        await running.platform.database.write(remove, f"d{len(texts)}")
        started = time.perf_counter()
        print(f"first query after one document less: {await timed(ann, lookup)}", flush=True)
        await eventually(lambda: not holds(folder), 1_000)
        print(f"its text has left the disk after {time.perf_counter() - started:.1f} s", flush=True)
        print(f"a query then: {await timed(ann, lookup)}", flush=True)


async def fill_one(running: Running, base: str, number: int) -> None:

    def write(unit: Unit) -> None:
        _document(unit, base, number)
        text = f"{SECRET} founded the Harbour Library of Tromsø."
        passage = rag.Passage(text, "", 0.0, f"p{number}", "d", char_end=len(text))
        built = build(rules(), [passage], relationships=True)
        origin = Origin("", f"d{number}", knowledge_base_id=base, title=f"{number}.txt")
        write_graph(unit, origin, built, "rules", relationships=True)

    await running.platform.database.write(write)


def a_name(session: Session) -> str:
    known = func.count().between(8, 12)
    of_some = select(Entity.name).where(Entity.name.not_like("%'%")).group_by(Entity.name).having(known)
    return str(session.scalars(of_some.order_by(Entity.name).limit(1)).one())


def remove(unit: Unit, document_id: str) -> None:
    drop_of_document(unit, document_id)
    unit.session.delete(unit.session.get(Document, document_id))


def size_of(folder: Path) -> int:
    files = (path for path in (folder / "graph_rag").rglob("*") if path.is_file())
    return sum({(stat := path.stat()).st_ino: stat.st_size for path in files}.values())


def holds(folder: Path) -> bool:
    """Whether a file of the RDF stores has the deleted document's name for its founder."""
    wanted = SECRET.lower().partition(" ")[0].encode()
    try:
        files = [path for path in (folder / "graph_rag").rglob("*") if path.is_file()]
        return any(wanted in path.read_bytes().lower() for path in files)
    except FileNotFoundError:
        return True


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else DOCUMENTS
    with tempfile.TemporaryDirectory() as folder:
        uvloop.run(bench(Path(folder) / "home", count))


if __name__ == "__main__":
    main()
