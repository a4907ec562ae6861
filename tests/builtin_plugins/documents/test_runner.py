"""A parser runs in its own process, and nothing it does reaches beyond its limits."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from builtin_plugins.documents.archives.archive import MAX_UNPACKED_BYTES
from builtin_plugins.documents.blocks import (
    DETAILS,
    Parser,
    ParserUnavailable,
    UnparsableDocument,
    parsed_text,
)
from builtin_plugins.documents.detection import detect_media_type
from builtin_plugins.documents.parsers import BUILTIN_PARSERS
from builtin_plugins.documents.protocol import read_blocks
from builtin_plugins.documents.runner import ParsedDocument, ParseLimits, parser_processes
from builtin_plugins.documents.runner import parse as parse_by
from kernel.sdk import ChildLimits, MachineFault
from tests.builtin_plugins.documents.sample_documents import (
    add_member,
    billion_laughs,
    pdf,
    prose,
    slides,
    word,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

Parse = Callable[[Path, Parser, ParseLimits, Path], Awaitable[ParsedDocument]]
LIMITS = ParseLimits(memory_mb=1024, cpu_seconds=20, wall_seconds=30, max_text_chars=5_000_000)

HOSTILE = "tests.builtin_plugins.documents.hostile_parsers"


def hostile(name: str) -> Parser:
    return Parser(name, (), f"{HOSTILE}:{name}")


def parser_for(path: Path) -> Parser:
    """Return the built-in parser of a file, as ingestion finds it."""
    kind = detect_media_type(path)
    return next(parser for parser in BUILTIN_PARSERS if kind in parser.media_types)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def parse() -> AsyncIterator[Parse]:
    """The parser processes of one platform."""
    async with aclosing(parser_processes()) as children:
        yield partial(parse_by, children)


async def failure(
    parse: Parse, path: Path, parser: Parser, limits: ParseLimits = LIMITS
) -> UnparsableDocument:
    """Parse, expect a refusal, and check what holds for every refusal."""
    sink = path.parent / "sink"
    with pytest.raises(UnparsableDocument) as caught:
        await parse(path, parser, limits, sink)
    assert caught.value.detail == DETAILS[caught.value.code]
    assert sorted(entry.name for entry in path.parent.iterdir()) == [path.name]
    return caught.value


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """A small file for parsers that do not care."""
    path = tmp_path / "blob"
    path.write_text("a few words", encoding="utf-8")
    return path


async def readable(descriptor: int) -> None:
    """Wait until a file descriptor can be read."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(descriptor, ready.set_result, None)
    try:
        async with asyncio.timeout(10):
            await ready
    finally:
        loop.remove_reader(descriptor)


async def gone(pid: int) -> bool:
    """Wait until a process, anybody's child, has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        await readable(descriptor)
    finally:
        os.close(descriptor)
    return True


@pytest.fixture
def pipe(tmp_path: Path, document: Path) -> Iterator[tuple[Path, int]]:
    """A document, and the reading end of its sink, through which `announces_itself` tells its process id."""
    sink = tmp_path / "sink"
    os.mkfifo(sink)
    descriptor = os.open(sink, os.O_RDONLY | os.O_NONBLOCK)
    yield document, descriptor
    os.close(descriptor)


async def test_parses_a_pdf(parse: Parse, tmp_path: Path) -> None:
    """The sums agree with the blocks, and the blocks carry the pages."""
    path = pdf(tmp_path / "blob", [prose(3), [], prose(2, 3)])
    found = await parse(path, parser_for(path), LIMITS, tmp_path / "sink")
    blocks = list(read_blocks(found.sink))
    assert [block.page for block in blocks] == [1, 3]
    assert (found.char_count, found.page_count) == (len(parsed_text(blocks)), 3)
    assert found.sink.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("parser", BUILTIN_PARSERS, ids=lambda parser: parser.name)
async def test_every_builtin_parser_starts(parse: Parse, document: Path, parser: Parser) -> None:
    """Each built-in target can be imported in the process and comes to a decision about a few words."""
    try:
        found = await parse(document, parser, LIMITS, document.parent / "sink")
    except UnparsableDocument as error:
        assert error.code == "corrupt"
    else:
        assert found.char_count > 0


async def test_small_blocks_share_a_line_and_keep_the_text(parse: Parse, tmp_path: Path) -> None:
    """Many paragraphs become few lines of the sink; the parsed text is the same as if each had its own."""
    path = word(tmp_path / "blob", lambda d: [d.add_paragraph(line) for line in prose(300)])
    found = await parse(path, parser_for(path), LIMITS, tmp_path / "sink")
    blocks = list(read_blocks(found.sink))
    assert len(blocks) < 5 and found.page_count is None
    assert parsed_text(blocks) == "\n\n".join(prose(300))


async def test_pages_of_slides(parse: Parse, tmp_path: Path) -> None:
    """Slides keep their numbers through the process."""
    path = slides(tmp_path / "blob", [("One", "a"), ("Two", "b")])
    found = await parse(path, parser_for(path), LIMITS, tmp_path / "sink")
    assert [(block.page, block.text) for block in read_blocks(found.sink)] == [
        (1, "One\n\na"),
        (2, "Two\n\nb"),
    ]
    assert found.page_count == 2


async def test_a_strangers_parser(parse: Parse, document: Path) -> None:
    """Any importable function works, with plain values and from a folder only this process knows."""
    found = await parse(document, hostile("stranger"), LIMITS, document.parent / "sink")
    blocks = [(block.text, block.page) for block in read_blocks(found.sink)]
    assert blocks == [("a title", None), ("a few words", 3)]
    assert found.page_count == 3


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("spin", "timeout"),
        ("hang", "timeout"),
        ("devour", "memory"),
        ("endless", "too_large"),
        ("flood", "too_large"),
        ("crash", "corrupt"),
        ("bare_exit", "corrupt"),
        ("raises_code", "encrypted"),
        ("wrong_type", "corrupt"),
    ],
)
async def test_misbehaving_parser(parse: Parse, document: Path, name: str, code: str) -> None:
    """Hanging, hoarding, flooding and crashing end with a code, soon, and leave nothing behind."""
    limits = ParseLimits(memory_mb=256, cpu_seconds=1, wall_seconds=2, max_text_chars=1_000_000)
    if name in ("endless", "flood", "devour"):
        limits = limits._replace(cpu_seconds=20, wall_seconds=20)
    started = time.monotonic()
    assert (await failure(parse, document, hostile(name), limits)).code == code
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("target", [f"{HOSTILE}:no_such", "no_such_module:parse", "nonsense"])
async def test_parser_that_cannot_be_started(parse: Parse, document: Path, target: str) -> None:
    with pytest.raises(ParserUnavailable, match="cannot be started"):
        await parse(document, Parser("x", (), target), LIMITS, document.parent / "sink")
    assert list(document.parent.iterdir()) == [document]


async def test_what_a_parser_says_goes_to_the_log_only(
    parse: Parse, document: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        error = await failure(parse, document, hostile("raises_code"))
    assert "stranger" not in f"{error} {error.detail}"
    assert "<script>stranger</script>" in caplog.text


async def test_unstorable_characters_never_reach_the_sink(parse: Parse, document: Path) -> None:
    """NUL, lone surrogates and carriage returns are gone; the text can be stored and counted."""
    found = await parse(document, hostile("unstorable"), LIMITS, document.parent / "sink")
    (block,) = read_blocks(found.sink)
    assert block.text == "nul surrogate\ufffd break\nend"
    assert found.char_count == len(block.text)


async def test_secrets_do_not_reach_the_parser(document: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JWT_SECRET", "hidden")
    monkeypatch.setenv("DATABASE_URL", "hidden")
    async with aclosing(parser_processes()) as children:
        found = await parse_by(children, document, hostile("environment"), LIMITS, document.parent / "sink")
    names = set(parsed_text(read_blocks(found.sink)).split("\n"))
    assert not names & {"JWT_SECRET", "DATABASE_URL", "HOME"}


async def test_process_imports_little(parse: Parse, document: Path) -> None:
    """The process has nothing of the platform that parsers don't need."""
    found = await parse(document, hostile("modules"), LIMITS, document.parent / "sink")
    names = set(parsed_text(read_blocks(found.sink)).split("\n"))
    assert "builtin_plugins.documents.blocks" in names
    assert not names & {"kernel.sdk", "aiohttp", "asyncio", "sqlalchemy", "pydantic"}


async def test_killed_from_outside(parse: Parse, document: Path) -> None:
    """A parser that held little memory and was killed is blamed on the machine."""
    with pytest.raises(MachineFault, match="out of memory"):
        await parse(document, hostile("killed"), LIMITS, document.parent / "sink")
    assert list(document.parent.iterdir()) == [document]


async def test_cancellation_kills_the_process(parse: Parse, pipe: tuple[Path, int]) -> None:
    """A cancelled parse takes its process with it and removes the sink."""
    path, reader = pipe
    task = asyncio.create_task(parse(path, hostile("announces_itself"), LIMITS, path.with_name("sink")))
    await readable(reader)
    pid = int(os.read(reader, 20))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone(pid)
    assert not path.with_name("sink").exists()


async def test_grandchildren_do_not_outlive_the_parser(parse: Parse, document: Path) -> None:
    found = await parse(document, hostile("leaves_child"), LIMITS, document.parent / "sink")
    pid = int(parsed_text(read_blocks(found.sink)))
    assert await gone(pid)


async def test_what_is_imported_for_later_documents(document: Path) -> None:
    """Our own parser, once a document needs it. A plugin's could reach every later one, and is never."""
    own = next(parser for parser in BUILTIN_PARSERS if parser.name == "text")
    limits = ChildLimits(memory_mb=512, cpu_seconds=10, wall_seconds=20)
    async with aclosing(parser_processes()) as children:

        async def later(module: str) -> bool:
            return bool(await children.call("tests.fakes.child_tasks:imported", module, limits=limits))

        for parser, stays in ((own, True), (hostile("stranger"), False)):
            module = parser.target.partition(":")[0]
            assert not await later(module)
            await parse_by(children, document, parser, LIMITS, document.parent / "sink")
            assert await later(module) is stays


async def test_process_dies_with_its_parent(parse: Parse, pipe: tuple[Path, int]) -> None:
    path, reader = pipe
    program = (
        "import asyncio, pathlib, sys\n"
        "from builtin_plugins.documents.blocks import Parser\n"
        "from builtin_plugins.documents.runner import ParseLimits, parse, parser_processes\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "parser = Parser('x', (), 'tests.builtin_plugins.documents.hostile_parsers:announces_itself')\n"
        "limits = ParseLimits(512, 20, 60, 1000)\n"
        "async def main():\n"
        "    await parse(parser_processes(), path, parser, limits, path.with_name('sink'))\n"
        "asyncio.run(main())\n"
    )
    modules = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[3])])
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, str(path)), env={**os.environ, "PYTHONPATH": modules}
    )
    await readable(reader)
    pid = int(os.read(reader, 20))
    worker.kill()
    await worker.wait()
    assert await gone(pid)


async def test_loop_stays_responsive(parse: Parse, tmp_path: Path) -> None:
    """Parsing a long document does not hold up the event loop."""
    path = pdf(tmp_path / "blob", [prose(40)] * 60)
    task = asyncio.create_task(parse(path, parser_for(path), LIMITS, tmp_path / "sink"))
    longest, before = 0.0, time.monotonic()
    while not task.done():
        await asyncio.sleep(0.001)
        longest, before = max(longest, time.monotonic() - before), time.monotonic()
    assert (await task).page_count == 60
    assert longest < 0.25


async def test_hostile_documents_end_with_a_code(parse: Parse, tmp_path: Path) -> None:
    """Bombs, passwords, truncation and scans end by the whole road as they end inside the parser."""

    def paragraph(document: object) -> None:
        document.add_paragraph("LAUGH")  # type: ignore[attr-defined]

    makers = {
        "too_large": lambda p: add_member(word(p, paragraph), "word/media/x.bin", MAX_UNPACKED_BYTES),
        "corrupt": lambda p: billion_laughs(word(p, paragraph), "word/document.xml"),
        "encrypted": lambda p: pdf(p, [prose(2)], password="secret"),
        "no_text": lambda p: pdf(p, [[], []]),
    }
    for code, make in makers.items():
        folder = tmp_path / code
        folder.mkdir()
        path = make(folder / "blob")
        assert (await failure(parse, path, parser_for(path))).code == code


@pytest.mark.long
async def test_a_form_without_end(parse: Parse, tmp_path: Path) -> None:
    """Fields that contain each other would keep the process busy for days; forms have their own limit."""
    parts = ["/Type/Catalog/Pages 2 0 R/AcroForm<</Fields[4 0 R]>>", "/Type/Pages/Kids[3 0 R]/Count 1"]
    parts += ["/Type/Page/Parent 2 0 R", "/T(a)/Kids[5 0 R 5 0 R]", "/T(b)/Kids[4 0 R 4 0 R]"]
    objects = "".join(f"{number} 0 obj\n<<{part}>>\nendobj\n" for number, part in enumerate(parts, 1))
    path = tmp_path / "blob"
    path.write_text(f"%PDF-1.7\n{objects}trailer\n<</Root 1 0 R/Size 6>>\n")
    limits = LIMITS._replace(cpu_seconds=300, wall_seconds=300)
    async with asyncio.timeout(60):
        assert (await failure(parse, path, parser_for(path), limits)).code == "timeout"


@pytest.mark.parametrize(("drawings", "times"), [(1, 2), (12, 10)])
async def test_a_drawing_without_end(parse: Parse, tmp_path: Path, drawings: int, times: int) -> None:
    """Drawings that draw themselves, or each other in a circle, several times, would take all memory that a
    large document may: loading a page has its own limit.
    """
    parts = ["/Type/Catalog/Pages 2 0 R", "/Type/Pages/Kids[3 0 R]/Count 1"]
    parts.append("/Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</XObject<</F 4 0 R>>>>")
    content = "/F Do " * times
    for number in range(4, 4 + drawings):
        following = 4 + (number - 3) % drawings
        parts.append(
            f"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Length {len(content)}"
            f"/Resources<</XObject<</F {following} 0 R>>>>>>stream\n{content}\nendstream"
        )
    objects = "".join(
        f"{number} 0 obj\n<<{part}{'' if part.endswith('endstream') else '>>'}\nendobj\n"
        for number, part in enumerate(parts, 1)
    )
    path = tmp_path / "blob"
    path.write_text(f"%PDF-1.7\n{objects}trailer\n<</Root 1 0 R/Size {len(parts) + 1}>>\n")
    limits = LIMITS._replace(memory_mb=2048, cpu_seconds=60, wall_seconds=90)
    assert (await failure(parse, path, parser_for(path), limits)).code == "timeout"


async def test_more_hostile_texts(parse: Parse, tmp_path: Path) -> None:
    """Deep JSON, one huge CSV line and a file of white space end with a code or as text."""
    limits = LIMITS._replace(memory_mb=512, max_text_chars=20_000_000)
    folder = tmp_path / "in"
    folder.mkdir()
    path = folder / "blob"
    path.write_bytes(b"[" * 100_000 + b"]" * 100_000)
    assert (await failure(parse, path, parser_for(path), limits)).code == "too_deep"
    for nothing in (" \n\t", "\u00a0\u200b\ufeff\n"):
        path.write_bytes(nothing.encode() * 10_000)
        assert (await failure(parse, path, parser_for(path), limits)).code == "no_text"
    path.write_bytes(b"a;b\n1;" + b"x" * 10_000_000 + b"\n")
    found = await parse(path, BUILTIN_PARSERS[7], limits, tmp_path / "sink")
    assert found.char_count > 10_000_000
    assert max(len(block.text) for block in read_blocks(found.sink)) <= 65_536


async def test_text_limit_is_exact(parse: Parse, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    path = folder / "blob"
    path.write_text("x" * 1_000, encoding="utf-8")
    found = await parse(path, parser_for(path), LIMITS._replace(max_text_chars=1_000), tmp_path / "sink")
    assert found.char_count == 1_000
    assert (
        await failure(parse, path, parser_for(path), LIMITS._replace(max_text_chars=999))
    ).code == "too_large"


@pytest.mark.parametrize(
    "broken", ['[1, "cut', '[1, "whole"]\n', '{"page": 1}\n[null, "late"]\n', "[1, 2]\n", ""]
)
async def test_damaged_sink_is_noticed(tmp_path: Path, broken: str) -> None:
    """A sink that lost its end or was written by something else is refused, or ends where it says."""
    sink = tmp_path / "sink"
    sink.write_text(broken, encoding="utf-8")
    if broken.startswith("{"):
        assert list(read_blocks(sink)) == []
        return
    with pytest.raises(UnparsableDocument):
        list(read_blocks(sink))


async def test_details_are_complete() -> None:
    """Every code has its sentence, and sentences are plain."""
    codes = {"encrypted", "corrupt", "no_text", "no_ocr", "too_deep", "timeout", "memory"}
    codes |= {"too_large", "too_many", "too_many_pixels", "unrecognized"}
    assert set(DETAILS) == codes
    assert json.dumps(DETAILS, ensure_ascii=True) == json.dumps(DETAILS, ensure_ascii=False)
