"""What a user of the command `llm` does, against the platform: ``python llm_user.py BASE_URL TOKEN``."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

base_url, token = sys.argv[1:]
MODELS = f"""
- model_id: ours
  model_name: llama3.2
  api_base: {base_url}
  api_key_name: ours
  supports_tools: true
- model_id: handbook
  model_name: pipeline/Travel handbook
  api_base: {base_url}
  api_key_name: ours
"""
BEEP = """
def beep(times: int) -> str:
    "Beeps."
    return "beep " * times
"""


def llm(home: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "llm", *arguments]
    environment = {**os.environ, "LLM_USER_PATH": home}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


with tempfile.TemporaryDirectory() as home:
    (Path(home) / "extra-openai-models.yaml").write_text(MODELS)
    llm(home, "keys", "set", "ours", "--value", token)
    assert llm(home, "-m", "ours", "How are you?") == "Done."
    assert llm(home, "-m", "ours", "--no-stream", "How are you?") == "Done."
    assert llm(home, "-m", "ours", "--functions", BEEP, "Beep twice!") == "Done."
    assert llm(home, "-m", "handbook", "How much may a hotel cost per night?")
