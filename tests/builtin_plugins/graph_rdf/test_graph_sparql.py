"""SPARQL, export and import: the caller's graphs and nothing else, within limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pyoxigraph as ox
import pytest
import pytest_asyncio

from builtin_plugins.graph_rdf.queries import QueryRefused, check
from kernel.testing import Actor, Reply, Running, eventually, platforms, somebody
from tests.builtin_plugins.graph_rag.graph_support import (
    API,
    INSTITUTE,
    STATION,
    call,
    construct,
    ingest,
    make_base,
    names,
    switch,
)
from tests.fakes.hash_embeddings import HashEmbeddings

pytestmark = pytest.mark.asyncio(loop_scope="session")

PREFIXES = (
    "PREFIX skos: <http://www.w3.org/2004/02/skos/core#> PREFIX g: <https://platform.dev/ns/graph-rag#> "
    "PREFIX prov: <http://www.w3.org/ns/prov#> PREFIX s: <https://schema.org/> "
)
ELSEWHERE = "SERVICE SILENT <http://127.0.0.1:9/> { ?x ?y ?z }"
NAMES = PREFIXES + "SELECT DISTINCT ?name WHERE { ?e skos:prefLabel ?name } ORDER BY ?name"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def running(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """A platform on SQLite: nothing here depends on the database."""
    async with platforms(tmp_path_factory.mktemp("sparql")) as start:
        yield await start("rag", "graph_rdf", HashEmbeddings())


async def sparql(actor: Actor, query: str, **options: Any) -> Reply:
    return await actor.post(f"{API}/sparql", json={"query": query}, **options)


async def column(actor: Actor, query: str) -> list[str]:
    """The values of a query's only variable."""
    answer = await sparql(actor, query)
    assert answer.status == 200, answer.body
    body = answer.json()
    [name] = body["head"]["vars"]
    return [row[name]["value"] for row in body["results"]["bindings"]]


class TestQueries:
    async def test_select(self, ann: Actor) -> None:
        """Entities, and every mention back to its document and its characters."""
        await construct(ann, "a", INSTITUTE)
        assert "Nordlys Research Institute" in await column(ann, NAMES)
        places = await sparql(
            ann,
            PREFIXES
            + "SELECT ?id ?start ?end WHERE { ?m a g:Mention; g:names ?e; g:start ?start; g:end ?end;"
            " prov:wasDerivedFrom/s:isPartOf/s:identifier ?id . ?e skos:prefLabel 'Senja Station' }",
        )
        [row] = places.json()["results"]["bindings"]
        assert row["id"]["value"] == "a"
        assert INSTITUTE[int(row["start"]["value"]) : int(row["end"]["value"])] == "Senja Station"

    async def test_other_forms(self, ann: Actor) -> None:
        """ASK, CONSTRUCT and DESCRIBE; a graph is written as the client wants it."""
        await construct(ann, "a", INSTITUTE)
        yes = await sparql(ann, PREFIXES + "ASK { ?e skos:prefLabel 'Senja Station' }")
        assert yes.json()["boolean"] is True
        wanted = PREFIXES + "CONSTRUCT { ?e skos:prefLabel ?n } WHERE { ?e skos:prefLabel ?n }"
        for media_type in ("text/turtle", "application/n-triples", "application/ld+json"):
            made = await sparql(ann, wanted, headers={"Accept": media_type})
            assert made.headers["Content-Type"].startswith(media_type)
            kind = ox.RdfFormat.from_media_type(media_type)
            assert "Senja Station" in {q.object.value for q in ox.parse(made.body, format=kind)}
        told = await sparql(ann, "DESCRIBE <urn:platform:entity:senja%20station>")
        assert b"Senja Station" in told.body

    async def test_always_as_of_now(self, ann: Actor) -> None:
        """What was written or dropped before a query counts, in every process."""
        await construct(ann, "a", INSTITUTE)
        assert "Senja Station" in await column(ann, NAMES)
        await construct(ann, "a", "Emil Dahl bakes bread.")
        assert await column(ann, NAMES) == ["Emil Dahl"]
        await ann.delete(f"{API}/graph/document/a")
        assert await column(ann, NAMES) == []

    async def test_only_ones_own(self, running: Running) -> None:
        """Neither a pattern, nor GRAPH, nor FROM reaches a graph of others; those of knowledge bases follow
        them."""
        ann, bob = await somebody(running), await somebody(running)
        await construct(ann, "a", INSTITUTE)
        base = await make_base(ann, graph=True)
        await ingest(running, ann, base, "a.txt", "Emil Dahl bakes bread.")
        graphs = await column(ann, "SELECT DISTINCT ?g WHERE { GRAPH ?g { ?s ?p ?o } }")
        assert len(graphs) == 2
        assert await column(bob, "SELECT ?s WHERE { ?s ?p ?o }") == []
        assert await column(bob, "SELECT ?g WHERE { GRAPH ?g { ?s ?p ?o } }") == []
        for graph in graphs:
            assert await column(bob, f"SELECT ?s WHERE {{ GRAPH <{graph}> {{ ?s ?p ?o }} }}") == []
            for clause in ("FROM", "FROM NAMED"):
                refused = await sparql(bob, f"SELECT ?s {clause} <{graph}> WHERE {{ ?s ?p ?o }}")
                assert refused.status == 422 and "can't see" in refused.detail[0]["msg"]
            assert await column(ann, f"SELECT ?s FROM <{graph}> WHERE {{ ?s ?p ?o }} LIMIT 1") != []
        await ann.patch(f"/v1/rag/knowledge-bases/{base}", json={"visibility": "shared"})
        assert "Emil Dahl" in await column(bob, NAMES)
        await switch(ann, base, False)
        assert "Emil Dahl" not in await column(bob, NAMES)

    @pytest.mark.parametrize(
        ("query", "reason"),
        [
            ("SELECT * WHERE { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", "SERVICE"),
            ("SELECT * WHERE { ?s ?p ?o FILTER EXISTS { SERVICE SILENT ?x { ?s ?p ?o } } }", "SERVICE"),
            ("SELECT * WHERE { \\u0053ERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }", "SERVICE"),
            ('SELECT * WHERE { # "\n SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } # "\n }', "SERVICE"),
            (f"SELECT * {{ # \\u000A VALUES ?a {{ '''\n {ELSEWHERE} # ''' }}\n }}", "SERVICE"),
            (f"PREFIX a: <urn:a> ASK {{ ?s a:b\\''' . # \r {ELSEWHERE} #\n ?s a:c '''d''' }}", "SERVICE"),
            (f"PREFIX : <urn:a> SELECT * {{ ?s ?p : . {ELSEWHERE} }}", "SERVICE"),
            ("PREFIX : <http://127.0.0.1:9/> SELECT * { SERVICE:b { ?s ?p ?o } }", "SERVICE"),
            ("INSERT DATA { <urn:a> <urn:b> <urn:c> }", "SELECT|SPARQL"),
            ("LOAD <http://127.0.0.1:9/>", "SPARQL"),
            ("DROP ALL", "SPARQL"),
            ("SELECT * WHERE { ?s ?p ?o } ; DROP ALL", "SPARQL"),
            ("SELECT * WHERE {", "SPARQL"),
            ("SELECT ?s FROM <urn:platform:graph:1:x> WHERE { ?s ?p ?o }", "can't see"),
            ("SELECT * WHERE " + "{" * 3_000 + "}" * 3_000, "nested|SPARQL"),
            ("SELECT (<urn:f>(1) AS ?x) WHERE {}", "<urn:f>"),
            ('ASK { ?s <urn:a> "\\U00110000" }', "code point"),
            ("BASE <http://[bad> SELECT * FROM <a> WHERE {}", "IPv6"),
            ("SELECT (1 AS ?n) (?m + 1 AS ?n) WHERE {}", "line 1"),
            ("SELECT (COUNT(*) AS ?n) (?n AS ?n) WHERE {}", "unbound"),
            ("SELECT * WHERE { <http://[bad> ?p ?o }", "IRI"),
            ("SELECT * WHERE { ?s x:y ?o }", "line 1"),
        ],
    )
    async def test_refused(self, ann: Actor, query: str, reason: str) -> None:
        """Anything but a query of the caller's graphs is refused before it runs."""
        refused = await sparql(ann, query)
        assert refused.status == 422, refused.body
        assert refused.detail[0]["loc"] == ["body", "query"]
        said = refused.detail[0]["msg"]
        assert any(one in said for one in reason.split("|")), said
        assert not any(one in said for one in ("expected", "[_]", "'..=")), "no one's grammar is of use"

    async def test_words_that_look_forbidden(self, ann: Actor) -> None:
        """A text, a comment, an address, a variable or a name of a vocabulary may speak of services."""
        query = "SELECT ?service WHERE { ?service ?p 'SERVICE' } # SERVICE <http://example.org/service>"
        assert await column(ann, query) == []
        query = f"{PREFIXES} SELECT ?x WHERE {{ ?x a s:Service ; s:serviceType ?kind }}"
        assert await column(ann, query) == []

    async def test_limits(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        """A query that takes too long is stopped; one with too many rows is cut and says so."""
        env = {"PLATFORM_GRAPH_RAG_SPARQL_SECONDS": "1", "PLATFORM_GRAPH_RAG_SPARQL_ROWS": "5"}
        async with platforms(tmp_path_factory.mktemp("limits")) as start:
            running = await start("graph_rdf", env=env)
            ann = await somebody(running)
            await construct(ann, "a", f"{INSTITUTE} {STATION}")
            cut = await sparql(ann, "SELECT ?s WHERE { ?s ?p ?o }")
            assert cut.json()["truncated"] is True and cut.headers["X-Truncated"] == "true"
            assert len(cut.json()["results"]["bindings"]) == 5
            crossed = " . ".join(f"?s{n} ?p{n} ?o{n}" for n in range(8))
            slow = await sparql(ann, f"SELECT (COUNT(*) AS ?n) WHERE {{ {crossed} }}")
            assert (slow.status, slow.json()["code"]) == (400, "query_too_expensive")
            assert (await sparql(ann, "ASK {}")).json()["boolean"] is True

    async def test_fair_shares(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        """One account can't take all places: further queries of its own wait, then are refused."""
        env = {
            "PLATFORM_GRAPH_RAG_SPARQL_SECONDS": "3",
            "PLATFORM_GRAPH_RAG_SPARQL_AT_ONCE": "2",
            "PLATFORM_GRAPH_RAG_SPARQL_WAIT_SECONDS": "1",
        }
        async with platforms(tmp_path_factory.mktemp("shares")) as start:
            running = await start("graph_rdf", env=env)
            ann, bob = await somebody(running), await somebody(running)
            await construct(ann, "a", f"{INSTITUTE} {STATION}")
            assert await column(bob, NAMES) == []
            crossed = " . ".join(f"?s{n} ?p{n} ?o{n}" for n in range(8))
            slow = f"SELECT (COUNT(*) AS ?n) WHERE {{ {crossed} }}"
            asked = [asyncio.create_task(sparql(ann, slow)) for _ in range(12)]
            first, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            refused = next(iter(first)).result()
            assert (refused.status, refused.json()["code"]) == (429, "too_many_queries")
            assert refused.headers["Retry-After"] == "33"  # what one may wait for the store, and what it runs
            assert (await sparql(bob, "ASK {}")).status == 200 and waiting
            codes = [answer.json()["code"] for answer in await asyncio.gather(*asked)]
            assert sorted(codes) == ["query_too_expensive"] + ["too_many_queries"] * 11
            assert (await sparql(ann, "ASK {}")).status == 200

    async def test_turns_go_around(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        """Who asks once does not wait behind all that another account asked before."""
        env = {"PLATFORM_GRAPH_RAG_SPARQL_AT_ONCE": "1"}
        async with platforms(tmp_path_factory.mktemp("turns")) as start:
            running = await start("graph_rdf", env=env)
            ann, bob = await somebody(running), await somebody(running)
            ended: list[Actor] = []

            async def ask(who: Actor) -> None:
                assert (await sparql(who, "ASK {}")).status == 200
                ended.append(who)

            await asyncio.gather(*(ask(ann) for _ in range(8)), ask(bob))
            assert len(ended) == 9 and ended.index(bob) < 7

    @pytest.mark.long
    async def test_a_broken_store(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        """A store that can't be read is built again by itself; one that is lost, too."""
        home = tmp_path_factory.mktemp("broken")
        for damage in ("none", "broken", "lost"):
            folder = home / "home" / "graph_rag" / "rdf" / "0"
            if damage == "broken":
                for file in folder.iterdir():
                    file.write_bytes(b"nonsense")
            elif damage == "lost":
                for file in folder.iterdir():
                    file.unlink()
            async with platforms(home / "home") as start:
                running = await start("graph_rdf")
                user = await running.user(f"user-{damage}")
                await construct(user, "a", INSTITUTE)
                assert "Senja Station" in await column(user, NAMES)

    async def test_deleted_leaves_the_disk(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        home = tmp_path_factory.mktemp("gone") / "home"
        async with platforms(home) as start:
            running = await start("graph_rdf")
            ann = await somebody(running)
            await construct(ann, "a", "Emil Secretson bakes bread.")
            await construct(ann, "b", INSTITUTE)
            assert "Emil Secretson" in await column(ann, NAMES)
            await ann.delete(f"{API}/graph/document/a")
            folder = home / "graph_rag" / "rdf"

            def clean() -> bool:
                try:
                    files = [path for path in folder.rglob("*") if path.is_file()]
                    return not any(b"secretson" in path.read_bytes().lower() for path in files)
                except FileNotFoundError:  # the store replaces its files meanwhile
                    return False

            await eventually(clean)


class TestFiles:
    async def test_export(self, running: Running) -> None:
        """The same statements in each format, only of graphs that the caller sees."""
        ann, bob = await somebody(running), await somebody(running)
        await construct(ann, "a", INSTITUTE)
        await construct(ann, "b", STATION)
        found = []
        for name in ("turtle", "n-quads", "json-ld"):
            answer = await ann.get(f"{API}/graph/export?format={name}")
            assert answer.status == 200, answer.body
            media_type = answer.headers["Content-Type"].partition(";")[0]
            quads = ox.parse(answer.body, format=ox.RdfFormat.from_media_type(media_type))
            found.append({quad.triple for quad in quads})
        assert found[0] == found[1] == found[2] and len(found[0]) > 50
        one = await ann.get(f"{API}/graph/export?format=n-quads&document_id=b")
        assert {
            quad.graph_name.value.rpartition(":")[2]
            for quad in ox.parse(one.body, format=ox.RdfFormat.N_QUADS)
        } == {"b"}
        for query in ("", "?document_id=a", "?kb_id=nowhere"):
            refused = await bob.get(f"{API}/graph/export{query}")
            assert (refused.status, refused.json()["code"]) == (404, "graph_not_found")

    async def test_names_that_look_like_syntax(self, ann: Actor) -> None:
        name = 'x> . <urn:a> <urn:b> <urn:c> . } DROP ALL # """ \\u0022'
        text = 'The book "Robert\'); <urn:a> { DROP ALL }" by Ada Lindqvist.'
        await construct(ann, name, text, title='"""\n<urn:evil> . @prefix')
        answer = await ann.get(f"{API}/graph/export?format=n-quads")
        quads = list(ox.parse(answer.body, format=ox.RdfFormat.N_QUADS))
        assert len({quad.graph_name for quad in quads}) == 1
        assert ox.NamedNode("urn:a") not in {quad.subject for quad in quads}
        assert name in {quad.object.value for quad in quads}
        assert await column(ann, "SELECT ?o WHERE { ?s <https://schema.org/identifier> ?o }") == [name]

    async def test_import(self, ann: Actor) -> None:
        """Statements become relations with evidence, and can be asked like any graph."""
        content = (
            "@prefix s: <https://schema.org/> . <urn:ada> s:name 'Ada Lindqvist' ; a s:Person ; "
            "s:worksFor <urn:nri> . <urn:nri> s:name 'Nordlys Institute' ; s:location <urn:x/Tromsø_City> ."
        )
        body = {"document_id": "people", "content": content}
        made = await ann.post(f"{API}/graph/import", json=body)
        assert made.status == 200, made.body
        assert (made.json()["entity_count"], made.json()["relationship_count"]) == (3, 2)
        related = await call(ann, "retrieve", query="ada lindqvist")
        assert names(related, "related_entities") == ["Nordlys Institute", "Tromsø City"]
        assert related["related_entities"][0]["predicate"] == "worksFor"
        shown = await call(ann, "entity-context", entity_text="Ada Lindqvist")
        assert shown["entity"]["label"] == "PERSON"
        assert shown["passages"][0]["text"].startswith("Ada Lindqvist worksFor Nordlys Institute.")

    @pytest.mark.parametrize("name", ["turtle", "n-quads", "json-ld"])
    async def test_an_export_is_read_in_again(self, running: Running, name: str) -> None:
        """Its entities, labels, further names and weighed relations are those of the exported graph.

        An export holds no texts, so places are those of the lines that an import writes.
        """
        ann, bob = await somebody(running), await somebody(running)
        text = f"{INSTITUTE} {STATION} On 4 May 2026 she met Emil Dahl."
        made = await construct(ann, "a", f"{text}\n\n{'Filler without names. ' * 20}\n\nAtlantis.")
        exported = await ann.get(f"{API}/graph/export?format={name}")
        body = {"document_id": "copy", "content": exported.body.decode(), "format": name}
        taken = await bob.post(f"{API}/graph/import", json=body)
        assert taken.status == 200, taken.body
        assert taken.json()["entity_count"] == made["entity_count"]
        assert taken.json()["relationship_count"] == made["relationship_count"]
        for query in (
            "SELECT ?e ?n ?l WHERE { ?e skos:prefLabel ?n ; g:label ?l }",
            "SELECT ?e ?n ?r WHERE { ?x a g:Naming ; g:names ?e ; skos:altLabel ?n ; g:reason ?r }",
            "SELECT ?s ?p ?o ?w WHERE { ?r rdf:subject ?s ; rdf:predicate ?p ; rdf:object ?o ; g:weight ?w }",
        ):
            asked = f"PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> {PREFIXES}{query}"
            both = [(await sparql(who, asked)).json()["results"]["bindings"] for who in (ann, bob)]
            first, second = (sorted(map(str, rows)) for rows in both)
            assert first == second and first, query

    @pytest.mark.parametrize(
        "body",
        [
            {"content": "no turtle at all"},
            {"content": "<urn:a> <urn:b> 'text' ."},
            {"content": '{"@context": "http://127.0.0.1:9/x", "@id": "urn:a"}', "format": "json-ld"},
            {"content": "".join(f"<a:a><a:b><a:c{n}>." for n in range(50_001))},
            {"content": ""},
            {"content": '<urn:a> <https://schema.org/name> "A\\u0000B" . <urn:a> <urn:b> <urn:c> .'},
            {"content": "<urn:a%00b> <urn:p> <urn:c> ."},
            {"content": "<urn:a> <urn:x/%00> <urn:c> ."},
            {"content": "<urn:a> <urn:platform:predicate:%00> <urn:c> ."},
            {"content": "<urn:platform:entity:%00x> <urn:b> <urn:c> ."},
            {"content": '<urn:a> <urn:b> <urn:c> ; <https://platform.dev/ns/graph-rag#label> "\\u0000" .'},
            {"content": '{"@id": "urn:a\\u0000", "urn:b": {"@id": "urn:c"}}', "format": "json-ld"},
        ],
    )
    async def test_bad_imports(self, ann: Actor, body: dict[str, str]) -> None:
        """What can't be read, has nothing to relate, or is too much, is refused with the reason."""
        refused = await ann.post(f"{API}/graph/import", json={"document_id": "a", **body})
        assert refused.status == 422, refused.body
        assert refused.detail[0]["loc"] == ["body", "content"]


async def test_several_at_once(ann: Actor) -> None:
    """Queries, writing and dropping at the same time: each answer is one state or the other."""
    await construct(ann, "a", INSTITUTE)

    async def change() -> None:
        for number in range(5):
            await construct(ann, f"x{number}", STATION)
            await ann.delete(f"{API}/graph/document/x{number}")

    changing = asyncio.create_task(change())
    answers = await asyncio.gather(*(column(ann, NAMES) for _ in range(8)))
    await changing
    for found in answers:
        assert "Nordlys Research Institute" in found
    assert "Aurora Sensor" not in await column(ann, NAMES)


async def test_checked_clauses() -> None:
    """FROM differs from FROM NAMED; without either, the dataset is the caller's."""
    found = check("SELECT * FROM <urn:a> FROM NAMED <urn:b> WHERE { ?s ?p ?o }")
    assert (found.form, found.default, found.named) == ("SELECT", ["urn:a"], ["urn:b"])
    assert check("ASK { ?s ?p ?o }").default is None
    assert not check("ASK { ?s ?p 'GRAPH' }").asks_graphs
    for pattern in ("GRAPH ?g { ?s ?p ?o }", "?a ?b ?c FILTER NOT EXISTS { gRaPh <urn:g> { ?s ?p ?o } }"):
        assert check(f"ASK {{ {pattern} }}").asks_graphs
    short = check(
        "BASE <urn:x:> PREFIX g: <urn:g:> SELECT * FROM g:a FROM NAMED <urn:x:b> WHERE { ?s ?p ?o }"
    )
    assert (short.default, short.named) == (["urn:g:a"], ["urn:x:b"])
    with pytest.raises(QueryRefused, match="PREFIX"):
        check("SELECT * FROM g:a WHERE { ?s ?p ?o }")
    with pytest.raises(QueryRefused, match="line 1"):
        check("SELECT")
