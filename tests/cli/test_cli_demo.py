"""`platformctl demo` from end to end, and the documents that it ships."""

from __future__ import annotations

from pathlib import Path

import pytest

from builtin_plugins.demo.commands import walk
from cli.failures import CommandFailed
from cli.instance import isolated_environment
from tests.fakes.processes import platformctl

ANSWERS = {
    "How many days a week may employees work from home?": ("three days", "employee-handbook.md"),
    "How much may a hotel in Oslo cost per night?": ("185 euro", "travel-policy.pdf, page 2"),
    "How often should I calibrate the anemometer?": ("once a year", "aurora-3-manual.docx"),
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the demo prints; every name of the operator's own platform leads nowhere."""
    scratch = tmp_path_factory.mktemp("demo")
    (scratch / "tmp").mkdir()
    env = {
        "TMPDIR": str(scratch / "tmp"),
        "PLATFORM_HOME": str(scratch / "mine"),
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "REDIS_URL": "redis://127.0.0.1:1",
        "OPENAI_BASE_URL": "http://127.0.0.1:1",
    }
    result = platformctl("demo", env=env, seconds=240)
    assert result.returncode == 0, result.stdout + result.stderr
    assert list((scratch / "tmp").glob("platform-demo-*")) == []
    assert not (scratch / "mine").exists()
    return result.stdout


def test_settings_of_the_machine_hold(tmp_path: Path) -> None:
    """How many threads a model may take holds for every instance on the machine. Here it is not a number."""
    env = {"PLATFORM_HOME": str(tmp_path), "PLATFORM_EMBEDDINGS_THREADS": "many"}
    result = platformctl("demo", env=env, seconds=240)
    assert result.returncode == 1
    assert "PLATFORM_EMBEDDINGS_THREADS" in result.stdout + result.stderr


def test_other_settings_do_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of the operator's own platform, a throw-away instance is given the threads alone."""
    threads = {"PLATFORM_EMBEDDINGS_THREADS": "1", "PLATFORM_MODELS_LOCAL_THREADS": "2"}
    for name, value in (
        threads | {"PLATFORM_MODELS_LOCAL_FILES": "x", "DATABASE_URL": "sqlite:///x"}
    ).items():
        monkeypatch.setenv(name, value)
    given = isolated_environment(tmp_path)
    assert {name: given.get(name) for name in threads} == threads
    assert not {"PLATFORM_MODELS_LOCAL_FILES", "DATABASE_URL"} & given.keys()


@pytest.mark.parametrize("question", walk.QUESTIONS)
def test_each_answer_is_right_and_cited(shown: str, question: str) -> None:
    """The answer holds the fact of the document, and the citation names file and page."""
    answer = shown.partition(f"? {question}\n")[2].partition("\n? ")[0]
    fact, source = ANSWERS[question]
    assert fact in answer
    assert f"[1] {source}" in answer


def test_an_unanswerable_question_gets_no_source(shown: str) -> None:
    answer = shown.partition(f"? {walk.UNANSWERABLE}\n")[2].partition("✓")[0]
    assert answer.strip() and "[1]" not in answer


def test_every_document_is_ingested_and_the_webhook_found(shown: str) -> None:
    """All samples end as passages, and what the webhook sent is found by its meaning."""
    assert "8 documents" in shown
    assert "nordlys/aurora-firmware#318" in shown


@pytest.mark.long
async def test_failure_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that goes wrong ends the demo with its reason, and the instance is stopped."""
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing that a PDF has")
    monkeypatch.setattr(walk, "SAMPLES", tmp_path / "samples")
    with pytest.raises(CommandFailed, match=r"broken\.pdf: "):
        await walk.demonstrate()


def test_samples_are_named_in_their_readme() -> None:
    """Each sample document is described, and nothing is described that is not there."""
    readme = (walk.SAMPLES / "README.md").read_text(encoding="utf-8")
    described = {line.split("`")[1] for line in readme.splitlines() if line.startswith("| `")}
    assert described == {path.name for path in walk.SAMPLES.iterdir()} - {"README.md"}
