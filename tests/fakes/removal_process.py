"""A worker process with a plugin that dies while it removes what belonged to a deleted account.

Run as ``python -m tests.fakes.removal_process``; the environment says where the platform lives.
"""

from __future__ import annotations

import asyncio

from kernel.testing import candidates_of
from tests.fakes.plugin_worker import work_until_stopped
from tests.fakes.shelf_of_things import DyingPlugin

if __name__ == "__main__":
    asyncio.run(work_until_stopped(candidates_of("accounts", DyingPlugin)))
