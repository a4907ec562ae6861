"""Plugins: order, refusal with a reason, and one plugin's failure kept from the rest."""

from __future__ import annotations

import functools
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

from kernel.hooks import hookspecs
from kernel.hooks.manager import HookManager
from kernel.plugins.loading import (
    Candidate,
    Plugin,
    PluginHost,
    PluginRecord,
    direct_candidates,
    problems_at_last_start,
    write_report,
)
from kernel.sdk import hookimpl, hookspec
from kernel.version import API_VERSION


def plugin(name: str, **attributes: Any) -> type[Plugin]:
    return type(name.title(), (Plugin,), {"name": name, **attributes})


def load(
    *plugins: type[Plugin] | Candidate,
    timeout: float = 5,
    disabled: Sequence[str] = (),
    earlier_problems: Collection[tuple[str, str]] = (),
) -> PluginHost:
    host = PluginHost(HookManager(hookspecs), timeout, disabled, earlier_problems=earlier_problems)
    host.load([p if isinstance(p, Candidate) else direct_candidates([p])[0] for p in plugins])
    return host


def the(host: PluginHost, name: str) -> PluginRecord:
    return host.records[name]


def failing(name: str, error: BaseException) -> Candidate:
    def raise_it() -> Any:
        raise error

    return Candidate(name, raise_it)


class TestReporting:
    """What is out of service is in the log, once."""

    def test_each_failure_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        """A failing import, what requires it, and a plugin with a misspelt hook; not what is disabled."""
        odd = plugin("odd", on_strat=hookimpl(lambda self: None))
        fails = failing("broken", RuntimeError("no license"))
        load(fails, plugin("needy", requires=("broken",)), odd, plugin("off"), disabled=["off"])
        logged = sorted(record.getMessage() for record in caplog.records)
        broken, needy, misspelt = logged
        assert broken.startswith("plugin broken ") and "no license" in broken
        assert needy.startswith("plugin needy ") and "'broken'" in needy
        assert "on_strat" in misspelt

    def test_what_was_told_is_not_repeated(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        """What a parent process wrote down is left to its log; a failure for another reason is not."""
        namesakes = [Candidate("twice", plugin("twice"), distribution=name) for name in ("one", "two")]

        def odd(hook: str) -> Candidate:
            return direct_candidates([plugin("odd", **{hook: hookimpl(lambda self: None)})])[0]

        broken = failing("broken", RuntimeError("no license"))
        host = load(broken, odd("on_strat"), *namesakes)
        write_report(tmp_path, list(host.records.values()))
        caplog.clear()
        load(broken, odd("on_strop"), *namesakes, earlier_problems=problems_at_last_start(tmp_path))
        (message,) = [record.getMessage() for record in caplog.records]
        assert "on_strop" in message


class TestOrder:
    def test_requirements_are_loaded_first(self) -> None:
        """`requires` and `after` decide the order, whatever the names say."""
        host = load(plugin("a", requires=("c",)), plugin("b", after=("a",)), plugin("c"))
        assert [record.name for record in host.loaded()] == ["c", "a", "b"]

    def test_a_cycle_of_requirements_is_refused(self) -> None:
        """Plugins that require each other are refused with the cycle; the others load."""
        host = load(plugin("a", requires=("b",)), plugin("b", requires=("a",)), plugin("c"))
        assert [record.name for record in host.loaded()] == ["c"]
        assert "cycle" in (the(host, "a").reason or "")

    def test_after_only_orders(self) -> None:
        """A wish to come later that contradicts a requirement costs nobody the start."""
        host = load(plugin("a", after=("b",)), plugin("b", requires=("a",)))
        assert [record.name for record in host.loaded()] == ["a", "b"]

    def test_one_name_in_place_of_a_list(self) -> None:
        """`requires = "rag"` means the plugin called rag, not r, a and g."""
        host = load(plugin("needy", requires="shelf"), plugin("shelf"))
        assert [record.name for record in host.loaded()] == ["shelf", "needy"]


class TestRefusal:
    @pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(3), ImportError("no module named x")])
    def test_import_that_raises(self, error: BaseException) -> None:
        host = load(failing("broken", error), plugin("fine"))
        assert the(host, "broken").status == "failed"
        assert type(error).__name__ in (the(host, "broken").reason or "")
        assert [record.name for record in host.loaded()] == ["fine"]

    def test_import_that_hangs(self) -> None:
        host = load(Candidate("slow", lambda: time.sleep(60)), plugin("fine"), timeout=0.2)
        assert "0.2 s" in (the(host, "slow").reason or "")
        assert the(host, "fine").status == "loaded"

    def test_missing_requirement_names_it(self) -> None:
        """The reason says which plugin is missing, and so on down the chain."""
        host = load(plugin("needy", requires=("nowhere",)), plugin("later", requires=("needy",)))
        assert "'nowhere'" in (the(host, "needy").reason or "")
        assert "'needy'" in (the(host, "later").reason or "")
        assert not host.loaded()

    @pytest.mark.parametrize("declared", ["0.9", "2.0", "platform.dev/v2", "platform.dev/v1alpha1", ""])
    def test_other_api_version(self, declared: str) -> None:
        """A plugin for another version of the API is refused and both versions are named."""
        host = load(plugin("old", api_version=declared))
        assert the(host, "old").status == "refused"
        assert declared in (the(host, "old").reason or "") and API_VERSION in (the(host, "old").reason or "")

    @pytest.mark.parametrize("declared", ["1.0", "1.7", "platform.dev/v1"])
    def test_this_api_version(self, declared: str) -> None:
        """The stable contract may be named as the specification does (9.3)."""
        record = the(load(plugin("new", api_version=declared)), "new")
        assert (record.status, record.api_version) == ("loaded", declared)

    def test_entry_point_and_plugin_disagree(self) -> None:
        host = load(Candidate("outside", plugin("inside")))
        assert "'inside'" in (the(host, "outside").reason or "")

    @pytest.mark.parametrize("name", ["kernel", "My-Plugin", "a-b", "", "1st", "a" * 51, "a;drop"])
    def test_names_that_can_not_be_prefixes(self, name: str) -> None:
        """A plugin's name is the prefix of its tables and variables; others are refused."""
        host = load(plugin(name), plugin("fine"))
        assert the(host, name).status == "refused"
        assert [record.name for record in host.loaded()] == ["fine"]

    def test_disabled_plugins_are_not_even_imported(self) -> None:
        host = load(failing("off", RuntimeError("imported")), disabled=["off"])
        assert the(host, "off").status == "disabled"

    def test_two_of_one_name(self) -> None:
        """Of two plugins with one name the platform's own stays, and the other's package is named."""
        own = Candidate("rag", plugin("rag", version="1"), "platform-kernel")
        host = load(Candidate("rag", plugin("rag", version="2"), "impostor"), own)
        assert the(host, "rag").version == "1"
        assert any("impostor" in problem for problem in the(host, "rag").problems)

    def test_no_secret_in_a_reason(self) -> None:
        """A reason is shown in /health: what looks like a secret is masked."""
        host = load(failing("leaky", RuntimeError("postgresql://me:hunter22@db/x refused")))
        assert "hunter22" not in (the(host, "leaky").reason or "")


class TestHooks:
    def test_hook_with_another_decorator(self) -> None:
        """What such a decorator made would never be called: the plugin is refused, not silently useless."""

        class Hidden(Plugin):
            name = "hidden"

            @hookimpl
            @functools.cache  # noqa: B019 - what an author may write
            def register_routes(self) -> list[Any]:
                return []

        hidden = the(load(Hidden), "hidden")
        assert (hidden.status, "register_routes" in (hidden.reason or "")) == ("refused", True)

    def test_wrappers_are_refused(self) -> None:
        """pluggy's wrappers run around others' answers; the platform has no place for them."""

        class Wrapper(Plugin):
            name = "wrapper"

            @hookimpl(wrapper=True)
            def decide_access(self) -> Any:
                return (yield)

        assert "wrapper" in (the(load(Wrapper), "wrapper").reason or "")

    def test_properties_are_not_read(self) -> None:
        """To find hooks, no code of the plugin runs: one whose property raises stops no start."""

        class Later(Plugin):
            name = "later"

            @property
            def connection(self) -> object:
                raise RuntimeError("not open yet")

            @hookimpl
            def register_routes(self) -> list[Any]:
                return []

        host = load(Later, plugin("fine"))
        assert [the(host, name).status for name in ("later", "fine")] == ["loaded", "loaded"]
        hooks = host.manager.get_hookcallers(the(host, "later").instance) or []
        assert [hook.name for hook in hooks] == ["register_routes"]

    def test_optional_hook_of_an_absent_plugin(self) -> None:
        """A hook of another plugin may be implemented as optional where that plugin is not installed."""

        class Guest(Plugin):
            name = "guest"

            @hookimpl(optionalhook=True)
            def register_recipes(self) -> list[str]:
                return ["soup"]

        assert the(load(Guest), "guest").status == "loaded"

    def test_hooks_that_a_plugin_brings(self) -> None:
        """A plugin's own hookspecs can be implemented by those that load after it."""

        @hookspec.declaration
        def register_recipes() -> list[str]:
            """Recipes."""
            return []

        class Kitchen(Plugin):
            name = "kitchen"

            @hookimpl
            def register_hookspecs(self) -> list[object]:
                return [register_recipes]

        class Guest(Plugin):
            name = "guest"
            requires = ("kitchen",)

            @hookimpl
            def register_recipes(self) -> list[str]:
                return ["soup"]

        host = load(Guest, Kitchen)
        assert host.manager.hook.register_recipes() == [["soup"]]

    def test_a_hook_that_exists_already(self) -> None:
        @hookspec.notification
        def on_event() -> None:
            """Taken."""

        class Thief(Plugin):
            name = "thief"

            @hookimpl
            def register_hookspecs(self) -> list[object]:
                return [on_event]

        host = load(Thief, plugin("fine"))
        assert the(host, "thief").status == "refused"
        assert "'on_event'" in (the(host, "thief").reason or "")
        assert the(host, "fine").status == "loaded"


class TestFail:
    def test_dependants_go_too(self) -> None:
        """A plugin that fails later takes all that require it out of service, each with a reason."""
        host = load(
            plugin("a"), plugin("b", requires=("a",)), plugin("c", requires=("b",)), plugin("d", after=("a",))
        )
        assert host.fail("a", "its pump broke") == ["a", "b", "c"]
        assert [record.name for record in host.loaded()] == ["d"]
        assert "its pump broke" in (the(host, "b").reason or "")
        assert "'b'" in (the(host, "c").reason or "")
