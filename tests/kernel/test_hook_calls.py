"""The three verbs of `platform.hooks`: what they answer, and what a failing plugin means to each kind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kernel.hooks.calling import Hooks, failure_behind
from kernel.hooks.manager import HookManager
from kernel.hooks.types import Failure, HookSpec
from kernel.libs.asyncpg_connections import DatabaseUnreachable
from kernel.plugins.loading import Plugin, PluginHost, PluginRecord, direct_candidates
from kernel.plugins.states import PluginStates
from kernel.sdk import Forbidden, hookimpl, hookspec

ROOT = Path(__file__).parents[2]


@hookspec.first
def find_price(article: str, currency: str) -> int | None:
    """The price of an article."""


@hookspec.first(failing="skip", seconds=0.01)
def find_shelf(article: str) -> int | None:
    """Where an article is."""


@hookspec.first(seconds=0.3)
def find_seller(article: str) -> int | None:
    """Who sells an article."""


@hookspec.all
def list_tags(article: str) -> Sequence[str] | None:
    """Tags of an article."""


@hookspec.all(failing="skip")
def list_notes(article: str) -> int | None:
    """Notes on an article."""


def _refusal(failure: Failure, article: str) -> str | None:
    return f"no word on {article} from {failure.plugin}"


@hookspec.all(failing=_refusal)
def judge(article: str) -> str | None:
    """A judgement, which must not be lost."""


@hookspec.first_now
def find_size(article: str) -> int | None:
    """The size of an article."""


@hookspec.all_now
def list_colours(article: str) -> int | None:
    """Colours of an article."""


@hookspec.declaration
def register_articles() -> Sequence[str] | None:
    """Articles on offer."""


@hookspec.all
def check_sale(article: str) -> None:
    """An article is about to be sold."""


@hookspec.notification(seconds=0.01)
def on_sale(article: str) -> None:
    """An article was sold."""


SPECS: tuple[HookSpec[..., Any], ...] = (
    *(find_price, find_shelf, find_seller, list_tags, list_notes, judge),
    *(find_size, list_colours, register_articles, check_sale, on_sale),
)


class Answering(Plugin):
    """Gives the same answer to every question, at once or by a coroutine; an error is raised."""

    def __init__(self, name: str, answer: Any, *, later: bool = False) -> None:
        self.name = name
        self.answer = answer
        self.later = later
        self.heard: list[str] = []

    def _say(self, article: str) -> Any:
        self.heard.append(article)
        return self._say_later() if self.later else self._say_now()

    def _say_now(self) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    async def _say_later(self) -> Any:
        await asyncio.sleep(0)
        return self._say_now()

    @hookimpl
    def find_price(self, article: str) -> Any:
        return self._say(article)

    @hookimpl
    def find_shelf(self, article: str) -> Any:
        return self._say(article)

    @hookimpl
    def list_tags(self, article: str) -> Any:
        return self._say(article)

    @hookimpl
    def list_notes(self, article: str) -> Any:
        return self._say(article)

    @hookimpl
    def judge(self, article: str) -> Any:
        return self._say(article)

    @hookimpl
    def find_size(self) -> Any:
        return self._say_now()

    @hookimpl
    def list_colours(self) -> Any:
        return self._say_now()

    @hookimpl
    def register_articles(self) -> Any:
        return self._say_now()

    @hookimpl
    def check_sale(self) -> Any:
        return self._say_now()

    @hookimpl
    def on_sale(self, article: str) -> Any:
        return self._say(article)


class Waiting(Plugin):
    """Waits for what never comes."""

    def __init__(self, name: str) -> None:
        self.name = name

    @hookimpl
    async def find_shelf(self) -> int | None:
        await asyncio.Event().wait()
        return None

    @hookimpl
    async def on_sale(self) -> None:
        await asyncio.Event().wait()


class Shop:
    """The hooks above with these plugins, and the failures that were reported."""

    def __init__(self, *plugins: Plugin, seconds: float = 5) -> None:
        self.host = PluginHost(HookManager(*SPECS), timeout=5)
        self.host.load(direct_candidates(plugins))
        self.reported: list[tuple[str, str, str]] = []
        self.hooks = Hooks(self.host.manager, self._report, self._report, seconds)

    def _report(self, plugin: str, hook: str, error: BaseException) -> None:
        self.reported.append((plugin, hook, type(error).__name__))


class TestAsk:
    @pytest.mark.parametrize("later", [False, True])
    async def test_the_first_answer(self, later: bool) -> None:
        """The plugin that loaded last is asked first; None passes the question on; the rest go unasked."""
        early, answering, silent = Answering("a", 1), Answering("b", 2, later=later), Answering("c", None)
        shop = Shop(early, answering, silent)
        assert await shop.hooks.ask(find_price, article="nail", currency="EUR") == 2
        assert (silent.heard, answering.heard, early.heard) == (["nail"], ["nail"], [])

    async def test_nobody_answers(self) -> None:
        """A first answer that nobody gives is None; of all answers there are none."""
        hooks = Shop(Answering("a", None)).hooks
        assert await hooks.ask(find_price, article="nail", currency="EUR") is None
        assert await hooks.ask(list_tags, article="nail") == []

    async def test_all_answers(self) -> None:
        shop = Shop(Answering("a", ["blunt"]), Answering("b", None), Answering("c", ["new"], later=True))
        assert await shop.hooks.ask(list_tags, article="nail") == [["new"], ["blunt"]]

    async def test_arguments_by_place(self) -> None:
        """Arguments may be given in the order of the specification."""
        shop = Shop(answering := Answering("a", 3))
        assert await shop.hooks.ask(find_price, "screw", "EUR") == 3
        assert answering.heard == ["screw"]

    @pytest.mark.parametrize("later", [False, True])
    async def test_a_failure_that_goes_to_the_caller(self, later: bool) -> None:
        """By default the caller hears of it, and it is reported: the error alone names no plugin."""
        shop = Shop(Answering("a", 1), Answering("b", KeyError("till"), later=later))
        with pytest.raises(KeyError) as raised:
            await shop.hooks.ask(find_price, article="nail", currency="EUR")
        assert shop.reported == [("b", "find_price", "KeyError")]
        failure = failure_behind(raised.value)
        assert failure is not None and (failure.plugin, failure.hook) == ("b", "find_price")

    async def test_a_database_that_is_away(self) -> None:
        """No plugin is to blame for it, and none is reported."""
        shop = Shop(Answering("a", DatabaseUnreachable("no route")))
        with pytest.raises(DatabaseUnreachable) as raised:
            await shop.hooks.ask(find_price, article="nail", currency="EUR")
        assert await shop.hooks.ask(list_notes, article="nail") == []
        assert shop.reported == [] and failure_behind(raised.value) is None

    async def test_one_that_never_answers(self) -> None:
        """Where the specification sets a limit, the others are asked after it, and the plugin is named."""
        shop = Shop(Answering("a", 1), Waiting("b"))
        assert await shop.hooks.ask(find_shelf, article="nail") == 1
        errors = await shop.hooks.tell(on_sale, article="nail")
        assert [type(error) for error in errors] == [TimeoutError]
        assert shop.reported == [("b", "find_shelf", "TimeoutError"), ("b", "on_sale", "TimeoutError")]

    async def test_one_that_is_stuck(self) -> None:
        """Once it has let its time pass, only one question at a time waits as long again, until it answers:
        whatever it waits for, not everybody has to.
        """

        class Stuck(Plugin):
            name = "stuck"
            freed = asyncio.Event()

            @hookimpl
            async def find_seller(self) -> int:
                await asyncio.sleep(0)
                await self.freed.wait()
                return 7

        def ask() -> asyncio.Future[int | None]:
            return asyncio.ensure_future(shop.hooks.ask(find_seller, article="nail"))

        async def outcomes(*asked: asyncio.Future[int | None]) -> list[str]:
            return [str(found) for found in await asyncio.gather(*asked, return_exceptions=True)]

        shop, whole, soon = Shop(Stuck()), "no answer within 0.3 s", "no answer within 0.01 s"
        assert await outcomes(ask(), ask()) == [whole, whole]
        assert await outcomes(ask(), ask(), ask()) == [whole, soon, soon]
        left = ask()
        assert await outcomes(ask()) == [soon]
        left.cancel()
        await outcomes(left)
        assert await outcomes(ask(), ask()) == [whole, soon]
        Stuck.freed.set()
        assert await outcomes(ask()) == ["7"]
        Stuck.freed.clear()
        assert await outcomes(ask(), ask()) == [whole, whole]

    @pytest.mark.parametrize(
        ("spec", "answer", "complaint"),
        [
            (find_price, "cheap", "returned a str; return int or None"),
            (list_tags, "blunt", "returned a str; return Sequence[str] or None"),
            (list_tags, ["blunt", 4], "returned a list with an int; return Sequence[str] or None"),
            (find_size, [4], "returned a list; return int or None"),
        ],
    )
    async def test_an_answer_of_another_type(self, spec: Any, answer: Any, complaint: str) -> None:
        """It counts as a failure that says what was returned, and what to return instead."""
        shop = Shop(Answering("a", answer))
        with pytest.raises(TypeError) as raised:
            if spec is find_size:
                shop.hooks.ask_now(spec, article="nail")
            else:
                await shop.hooks.ask(spec, "nail")
        assert str(raised.value) == complaint
        assert shop.reported == [("a", spec.name, "Misanswered")]

    async def test_a_hook_without_an_answer(self) -> None:
        shop = Shop(Answering("a", "sold"))
        await shop.hooks.ask(check_sale, article="nail")
        assert shop.reported == []

    @pytest.mark.parametrize("answer", [[], ("a", "b"), {"a"}, None])
    async def test_lists_of_any_kind(self, answer: Any) -> None:
        shop = Shop(Answering("a", answer))
        assert await shop.hooks.ask(list_tags, article="nail") == ([] if answer is None else [answer])
        assert shop.reported == []

    @pytest.mark.parametrize("later", [False, True])
    async def test_a_failure_that_is_passed_over(self, later: bool) -> None:
        shop = Shop(Answering("a", 1), Answering("b", SystemExit(3), later=later))
        assert await shop.hooks.ask(find_shelf, article="nail") == 1
        assert await shop.hooks.ask(list_notes, article="nail") == [1]
        assert shop.reported == [("b", "find_shelf", "SystemExit"), ("b", "list_notes", "SystemExit")]

    async def test_a_failure_with_an_answer_in_its_place(self) -> None:
        shop = Shop(Answering("a", "good"), Answering("b", RuntimeError("broken")))
        assert await shop.hooks.ask(judge, article="nail") == ["no word on nail from b", "good"]
        assert shop.reported == [("b", "judge", "RuntimeError")]

    async def test_an_error_for_the_client_is_an_answer(self) -> None:
        """A PlatformError goes through, whatever the specification says of failures."""
        shop = Shop(Answering("a", 1), Answering("b", Forbidden("not on Sundays")))
        for spec in (find_shelf, judge):
            with pytest.raises(Forbidden):
                await shop.hooks.ask(spec, article="nail")
        assert shop.reported == []


class TestAskNow:
    def test_answers(self) -> None:
        hooks = Shop(Answering("a", 4), Answering("b", None)).hooks
        assert hooks.ask_now(find_size, article="nail") == 4
        assert hooks.ask_now(list_colours, article="nail") == [4]

    def test_a_failure(self) -> None:
        """It goes to the caller: inside a transaction there is nothing to pass over. It is reported."""
        shop = Shop(Answering("a", KeyError("ruler")))
        with pytest.raises(KeyError):
            shop.hooks.ask_now(find_size, article="nail")
        assert shop.reported == [("a", "find_size", "KeyError")]

    def test_declarations(self) -> None:
        """They come with their plugin, in the order of loading; one that fails is reported."""
        plugins = Answering("a", ["nail"]), Answering("b", ValueError("empty")), Answering("c", ["screw"])
        shop = Shop(*plugins)
        assert shop.hooks.ask_now(register_articles) == [("a", ["nail"]), ("c", ["screw"])]
        assert shop.reported == [("b", "register_articles", "ValueError")]

    @pytest.mark.parametrize("declared", ["nail", 4, ["nail", 4]])
    def test_a_declaration_of_another_type(self, declared: Any) -> None:
        """It is reported and left out, before whoever reads it fails in its place."""
        shop = Shop(Answering("a", ["nail"]), Answering("b", declared))
        assert shop.hooks.ask_now(register_articles) == [("a", ["nail"])]
        assert shop.reported == [("b", "register_articles", "Misanswered")]

    def test_a_generator_of_declarations(self) -> None:
        """It is read at once: what it raises is its own plugin's failure."""

        def declared() -> Iterator[str]:
            yield "screw"
            raise KeyError("drawer")

        shop = Shop(Answering("a", iter(["nail"])), Answering("b", declared()))
        assert shop.hooks.ask_now(register_articles) == [("a", ["nail"])]
        assert shop.reported == [("b", "register_articles", "KeyError")]

    def test_a_declaration_that_hangs(self) -> None:
        """It is given up, and nobody else is to blame."""
        released = threading.Event()

        class Hanging(Plugin):
            name = "b"

            @hookimpl
            def register_articles(self) -> Any:
                released.wait()

        shop = Shop(Answering("a", ["nail"]), Hanging(), seconds=0.01)
        try:
            assert shop.hooks.ask_now(register_articles) == [("a", ["nail"])]
            assert shop.reported == [("b", "register_articles", "TimeoutError")]
        finally:
            released.set()


class TestTell:
    async def test_everyone_hears(self) -> None:
        """One that fails is reported and answered, and stops nobody."""
        plugins = Answering("a", None), Answering("b", OSError("full")), Answering("c", None, later=True)
        shop = Shop(*plugins)
        errors = await shop.hooks.tell(on_sale, article="nail")
        assert [type(error) for error in errors] == [OSError]
        assert [plugin.heard for plugin in plugins] == [["nail"], ["nail"], ["nail"]]
        assert shop.reported == [("b", "on_sale", "OSError")]

    async def test_a_database_that_is_away(self) -> None:
        """It is an error for whoever delivers, but no plugin is to blame for it, and none is reported."""
        shop = Shop(Answering("a", DatabaseUnreachable("no route")))
        errors = await shop.hooks.tell(on_sale, article="nail")
        assert [type(error) for error in errors] == [DatabaseUnreachable]
        assert shop.reported == []

    async def test_one_that_asks_another(self) -> None:
        """Whose hook fails on the way is to blame, not who let its error through."""

        class Curious(Plugin):
            name = "curious"
            hooks: Hooks

            @hookimpl
            async def on_sale(self, article: str) -> None:
                await self.hooks.ask(find_price, article=article, currency="EUR")

        class Pricing(Plugin):
            name = "pricing"

            @hookimpl
            def find_price(self) -> int:
                raise KeyError("till")

        curious = Curious()
        shop = Shop(curious, Pricing())
        curious.hooks = shop.hooks
        assert len(await shop.hooks.tell(on_sale, article="nail")) == 1
        assert shop.reported == [("pricing", "find_price", "KeyError")]


class Meanwhile(dict[str, PluginRecord]):
    """Records; while one is looked up, something happens in another thread."""

    def __init__(self, records: dict[str, PluginRecord], happens: Callable[[], None]) -> None:
        super().__init__(records)
        self.happens = happens

    def get(self, name: str, default: Any = None) -> Any:
        self.happens()
        return super().get(name, default)


def test_a_plugin_that_fails_while_failures_are_counted() -> None:
    """A hook may fail in a unit's thread at any moment; whoever asks for failures gets those before it."""
    host = Shop(Answering("a", None), Answering("b", None)).host
    states = PluginStates(host)
    states.hook_failed("a", "find_size", KeyError("ruler"))
    host.records = Meanwhile(host.records, lambda: states.hook_failed("b", "find_size", KeyError("ruler")))
    assert list(states.failing()) == ["a"]
    assert sorted(states.failing()) == ["a", "b"]


async def test_a_silenced_plugin_is_not_asked() -> None:
    hooks = Shop(Answering("a", 1), Answering("b", 2)).hooks
    hooks.silence(frozenset({"b"}))
    assert await hooks.ask(find_price, article="nail", currency="EUR") == 1
    hooks.silence(frozenset())
    assert await hooks.ask(find_price, article="nail", currency="EUR") == 2


WRONG = """
from builtin_plugins.inference import api as inference
from kernel.hooks import hookspecs
from kernel.sdk import Platform, Principal

async def ask(platform: Platform, principal: Principal) -> None:
    hooks = platform.hooks
    right = await hooks.ask(hookspecs.find_scope, platform=platform, principal=principal)
    reveal_type(right)
    await hooks.ask(hookspecs.find_scope, platform=platform, caller=principal)  # a wrong name
    await hooks.ask(hookspecs.find_scope, platform=platform)  # one is missing
    await hooks.ask(hookspecs.find_scope, platform=platform, principal=7)  # a wrong type
    number: int | None = await hooks.ask(inference.check_model_runtime, platform=platform)
    answer: int = await hooks.ask(hookspecs.find_scope, platform=platform, principal=principal)
    names: list[int] = await hooks.ask(inference.list_embedding_models, platform=platform)
    await hooks.ask(hookspecs.on_event, platform=platform)  # a notification is told
    hooks.ask_now(hookspecs.find_scope, platform=platform, principal=principal)  # it must be awaited
"""


@pytest.mark.long
def test_the_type_checker_sees_wrong_calls(tmp_path: Path) -> None:
    """Wrong argument names and types, wrong answers and the wrong verb are errors of mypy."""
    calls = tmp_path / "calls.py"
    calls.write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "--hide-error-context", calls]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    lines = {int(line.split(":")[1]) for line in found.splitlines() if ": error:" in line}
    assert 'Revealed type is "kernel.auth.ownership.Scope | None"' in found
    assert lines == {10, 11, 12, 14, 15, 16, 17}, found
