"""`platformctl plugins trial`: what it keeps away from."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.trial import try_start
from tests.cli.conftest import Cli


@pytest.mark.long
def test_a_trial_opens_no_stores_of_the_data(cli: Cli, platform_home: Path) -> None:
    """`config.yaml` is copied for the trial, but not the stores that it names: nobody offers these."""
    platform_home.mkdir(parents=True, exist_ok=True)
    config = "kernel:\n  blob_store: nobody://place\n  cache_store: nobodys\nvectors:\n  store: nobodys\n"
    (platform_home / "config.yaml").write_text(config)
    (found,) = try_start(["news"])
    assert found.status == "loaded", found.reason
