"""The daily cap of tokens of a published chat, with a model that counts them."""

from __future__ import annotations

from pathlib import Path

from kernel.testing import platforms
from tests.builtin_plugins.published_chat.page_support import PLUGINS, ROOMY, here, open_shop
from tests.fakes.model_server import Script, model_server


async def test_of_a_day(tmp_path: Path) -> None:
    """What answers cost is counted over all sessions; at the cap nobody asks any more."""
    script = Script(
        answer="A hotel may cost up to 130 EUR a night [1].", models=("llama3.2",), counts=(11, 7)
    )
    async with model_server(script) as server, platforms(tmp_path) as start:
        running = await start(*PLUGINS, env={**ROOMY, "OPENAI_BASE_URL": server.url})
        shop = await open_shop(running, daily_tokens=30)
        answers = [await (await here(shop)).ask() for _ in range(4)]
        assert [answer.status for answer in answers] == [200, 200, 429, 429]
        assert answers[-1].json()["code"] == "daily_limit"
        assert 0 < int(answers[-1].headers["Retry-After"]) <= 86_400
        [day] = (await shop.owner.get(shop.path + "/figures")).json()["items"]
        assert (day["tokens"], day["answered"], day["questions"]) == (36, 2, 2)
