"""The rules of the house that can be read off the source."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from kernel.hooks import hookspecs
from kernel.hooks.types import Declaration, HookSpec, specs_in
from kernel.plugins.loading import Plugin, installed
from kernel.testing.databases import by_name, requirements
from tests.house.test_sdk import MODULES as SDK
from tests.house.test_source import modules, parsed

ROOT = Path(__file__).parents[2]
PLUGINS = sorted(path.parent.name for path in (ROOT / "builtin_plugins").glob("*/plugin.py"))
BRINGING_HOOKS = sorted(
    f"{path.parent.name}.{path.stem}"
    for pattern in ("*/api.py", "*/hookspecs.py")
    for path in (ROOT / "builtin_plugins").glob(pattern)
)
HOOK_MODULES: list[ModuleType] = [
    hookspecs,
    *(import_module(f"builtin_plugins.{name}") for name in BRINGING_HOOKS),
]
HOOKS = [
    pytest.param(spec, id=f"{module.__name__}.{spec.name}")
    for module in HOOK_MODULES
    for spec in specs_in(module)
]
READS_ENVIRONMENT = {
    *(
        "kernel/settings/loading.py",
        "kernel/auth/secrets.py",
        "kernel/testing/__init__.py",
        "cli/instance.py",
    ),
    "kernel/libs/memory.py",  # whether the C library's own variables are set
}


@cache
def _plugin(name: str) -> Plugin:
    made: Plugin = by_name()[name].load()
    return made


COMMANDS_USE = {
    f"cli.{name}"
    for name in (
        *("accounts", "auditing", "broken_rules", "client", "console", "failures", "group", "instance"),
        *("options", "pip", "plugin_facts", "running", "scaffolding", "texts"),
    )
}
"""What a plugin's commands may import of the command line; no server imports them."""


def sources(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Every module of these folders, by its path from the top."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), parsed(path)


def imports(tree: ast.AST) -> Iterator[str]:
    """The modules that a module, or a part of it, imports; function bodies included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from _from(node.module, node.names)


def _from(module: str, names: list[ast.alias]) -> Iterator[str]:
    """What a `from` imports: a plugin's module if its package is named, otherwise the named module."""
    is_package = module.startswith("builtin_plugins.") and module.count(".") == 1
    yield from (f"{module}.{alias.name}" for alias in names) if is_package else [module]


@pytest.mark.parametrize("hook", HOOKS)
def test_hook_is_documented_and_typed(hook: HookSpec[..., object]) -> None:
    """A hook says when it fires and what it answers, and types every argument."""
    assert len(hook.text) > 40
    signature = inspect.signature(hook.function)
    assert signature.return_annotation is not inspect.Signature.empty
    assert all(p.annotation is not inspect.Parameter.empty for p in signature.parameters.values())


@pytest.mark.parametrize("hook", HOOKS)
def test_a_question_brings_the_platform(hook: HookSpec[..., object]) -> None:
    """Whoever is asked or told something gets the platform, or a caller that has it: nobody keeps it."""
    if not isinstance(hook, Declaration):
        assert {"platform", "ctx", "caller"} & set(hook.argument_names)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_plugin_keeps_no_platform(plugin: str) -> None:
    """A plugin's own object is made before any platform and may serve several: it remembers none."""
    ((_, tree),) = (
        found for found in sources(f"builtin_plugins/{plugin}") if found[0].endswith("/plugin.py")
    )
    kept = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and "platform" in node.attr
    ]
    assert not kept


@pytest.mark.parametrize("hook", HOOKS)
def test_hook_is_tested(hook: HookSpec[..., object]) -> None:
    """Some test implements or names the hook, or a built-in plugin that has tests does."""
    assert hook.name in _tests_and_plugins()


@cache
def _tests_and_plugins() -> str:
    places = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "builtin_plugins").rglob("plugin.py")]
    return "\n".join(path.read_text(encoding="utf-8") for path in places if path != Path(__file__))


def test_kernel_knows_no_plugin() -> None:
    """The kernel imports neither a plugin nor the command line: any plugin's folder can be deleted.

    The test kit, which nothing that serves imports, makes accounts for tests.
    """
    wrong = [
        f"{path} imports {name}"
        for path, tree in sources("kernel")
        for name in imports(tree)
        if name.split(".")[0] in ("builtin_plugins", "cli")
        and (path, name) != ("kernel/testing/__init__.py", "builtin_plugins.accounts.api")
    ]
    assert not wrong


def test_the_command_line_knows_no_plugin() -> None:
    """Commands that need a plugin's code are in that plugin: the others work without its folder."""
    wrong = [
        f"{path} imports {name}"
        for path, tree in sources("cli")
        for name in imports(tree)
        if name.split(".")[0] == "builtin_plugins"
    ]
    assert not wrong


@pytest.mark.parametrize("plugin", PLUGINS)
def test_plugin_imports_the_sdk_and_apis_of_neighbours(plugin: str) -> None:
    """`kernel.sdk`, its own package, third parties, and the `api` of plugins in `requires` or `after`.

    Its commands use the command line's own modules as well.
    A suite for the tests of plugin authors (`conformance.py`) also imports the test kit.
    """
    made = _plugin(plugin)
    apis = {f"builtin_plugins.{neighbour}.api" for neighbour in (*made.requires, *made.after)}
    wrong = [
        f"{path} imports {name}"
        for path, tree in sources(f"builtin_plugins/{plugin}")
        for name in imports(tree)
        if name.split(".")[0] in ("kernel", "builtin_plugins", "cli")
        and not f"{name}.".startswith(f"builtin_plugins.{plugin}.")
        and name not in {*SDK, *apis}
        and not ("/commands/" in path and name in COMMANDS_USE | {"cli"})
        and not (name == "kernel.testing" and path.endswith("/conformance.py"))
    ]
    assert not wrong


@pytest.mark.parametrize("plugin", sorted({name for one in PLUGINS for name in _plugin(one).after}))
def test_a_plugin_loads_without_an_optional_neighbour(plugin: str) -> None:
    """Whoever names a plugin in `after`, and does not require it, can be imported without its folder."""
    spared = [one for one in PLUGINS if plugin in _plugin(one).after and plugin not in requirements(one)]
    code = _IMPORT_WITHOUT.format(package=f"builtin_plugins.{plugin}", names=spared)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


_IMPORT_WITHOUT = """
import sys
from importlib import import_module
sys.modules["{package}"] = None
for name in {names}:
    import_module("builtin_plugins." + name + ".plugin")
"""


def test_nothing_imports_copyleft_parsers() -> None:
    """PyMuPDF, marker and leidenalg are AGPL or GPL, whatever is installed."""
    barred = {"fitz", "pymupdf", "marker", "leidenalg", "igraph"}
    wrong = [
        path
        for path, tree in sources("kernel", "builtin_plugins", "cli")
        for name in imports(tree)
        if name.split(".")[0] in barred
    ]
    assert not wrong


def test_openvino_is_imported_in_one_place() -> None:
    """A plain import of openvino starts its telemetry; one module knows how to keep it quiet."""
    everything = sources("kernel", "builtin_plugins", "cli")
    found = {path for path, tree in everything for n in imports(tree) if n.split(".")[0] == "openvino"}
    assert found <= {"builtin_plugins/embeddings/engines/openvino_runtime.py"}


def test_numpy_is_imported_before_its_typing() -> None:
    """If one thread imports `numpy.typing` first while another imports `numpy`, both imports fail."""
    for path, tree in sources("kernel", "builtin_plugins", "cli"):
        plain = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        names = [name for node in plain for name in imports(node)]
        assert "numpy.typing" not in names or "numpy" in names[: names.index("numpy.typing")], path


def test_environment_is_read_in_few_places() -> None:
    """House rule 7: code reads settings objects, never the environment."""
    found = {
        path
        for path, tree in sources("kernel", "builtin_plugins", "cli")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")
    }
    assert found <= READS_ENVIRONMENT


def test_no_state_in_modules() -> None:
    """House rule 7: no module keeps a mutable container that functions change."""
    wrong = [
        f"{path}: {name}"
        for path, tree in sources("kernel", "builtin_plugins", "cli")
        for name in _changed_globals(tree)
    ]
    assert not wrong


def _changed_globals(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names


@pytest.mark.parametrize("candidate", installed(), ids=lambda candidate: candidate.name)
def test_entry_point_loads(candidate: object) -> None:
    """Each entry point makes a plugin of its own name, with a version, a description and a README, and says
    beforehand whether it is essential.
    """
    plugin = candidate.load()  # type: ignore[attr-defined]
    assert plugin.essential == candidate.essential  # type: ignore[attr-defined]
    assert plugin.name == candidate.name  # type: ignore[attr-defined]
    assert plugin.version
    assert plugin.description
    assert (ROOT / "builtin_plugins" / plugin.name / "README.md").is_file()


def test_functions_are_short() -> None:
    """The median is under 12 lines, nine in ten stay under 30, none exceeds 80; migrations are lists."""
    lengths = [
        (node.end_lineno or 0) - node.lineno + 1
        for path, tree in sources("kernel", "builtin_plugins", "cli")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "/migrations/" not in path
    ]
    lengths.sort()
    assert lengths[len(lengths) // 2] <= 12
    assert lengths[int(len(lengths) * 0.9)] <= 30
    assert lengths[-1] <= 80


UNCONFINED = {
    "builtin_plugins/models/local/process.py",  # serves a model at a socket
    "builtin_plugins/platform_ops/backup/drilling.py",  # a whole instance of the platform
    "builtin_plugins/source_git/program.py",  # git, which connects to the repository's server
}


def test_children_are_confined() -> None:
    """A child that reads what others sent names the files that it reaches."""
    free = {
        str(path)
        for path, tree in modules("kernel", "builtin_plugins", "cli")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("call", "run")
        and not ast.unparse(node.func.value).endswith("client")  # of HTTP
        and {"limits", "reach"} & {keyword.arg for keyword in node.keywords} == {"limits"}
    }
    assert free == UNCONFINED


STARTERS = {
    "builtin_plugins/documents/images/ocr.py",  # tesseract, in a parser's process, which is confined
    "builtin_plugins/documents/previews/of_picture.py",  # the same, in a preview's process
    "builtin_plugins/mcp_client/stdio.py",  # the operator's own programs
    "kernel/libs/children/prepared.py",  # forks the children
    "kernel/process/serve.py",  # the platform's own processes
}


def test_programs_are_started_as_children() -> None:
    """No other part of the server starts programs by itself, where nothing would confine them."""
    started = {
        str(path)
        for path, tree in modules("kernel", "builtin_plugins")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and re.fullmatch(
            r"(asyncio\.)?create_subprocess_\w+|subprocess\.\w+|(subprocess\.)?Popen"
            r"|os\.(system|popen|fork|forkpty|posix_spawnp?|spawn\w+)",
            ast.unparse(node.func),
        )
        and not str(path).endswith("zygote.py")
    }
    assert started == STARTERS
