"""faster-whisper with a model folder of the operator's: its whole way, with a model of random numbers."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import numpy as np
import pytest

from kernel.testing import Start
from tests.builtin_plugins.speech.test_transcribing import packed, send
from tests.fakes.client_environments import environment_of
from tests.fakes.processes import process_environment

# Our packages come first: those of the other environment only fill in what is not installed here.
MAKE = """
import sys
sys.path.append(sys.argv[1])
from pathlib import Path
from tests.fakes.tiny_whisper import make_tiny_whisper
make_tiny_whisper(Path(sys.argv[2]))
"""


@pytest.mark.long
async def test_a_folder_of_the_operators(
    start_platform: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binaries = await asyncio.to_thread(environment_of, "whisper")
    [packages] = binaries.parent.glob("lib/python3*/site-packages")
    making = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", MAKE, str(packages), str(tmp_path)),
        env=process_environment({}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await making.communicate()
    assert making.returncode == 0, said.decode()[-2000:]
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])
    folder = tmp_path / "whisper"
    actor = await (await start_platform("speech", env={"PLATFORM_SPEECH_WHISPER_MODEL": str(folder)})).user()
    listed = (await actor.get("/v1/stt/languages")).json()
    assert set(listed["engines"].values()) == {"whisper"} and "tr-TR" in listed["engines"]
    noise = np.random.default_rng(1).integers(-9000, 9000, 32_000).astype(np.int16)
    heard = await send(actor, packed(noise, 16_000, "WAV"), language="tr-TR")
    assert heard.status == 200, heard.body
    body = heard.json()
    assert (body["engine"], body["language"]) == ("whisper", "tr-TR")
    assert 0 <= body["confidence"] < 1 and isinstance(body["text"], str)
    (folder / "model.bin").write_bytes(b"no model")
    broken = await send(actor, packed(noise, 16_000, "WAV"), language="tr-TR")
    assert broken.status == 503 and "Traceback" not in broken.body.decode(), broken.body
    (folder / "model.bin").unlink()
    assert set((await actor.get("/v1/stt/languages")).json()["engines"].values()) == {"pocketsphinx"}
