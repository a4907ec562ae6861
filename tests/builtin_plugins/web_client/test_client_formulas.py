"""Formulas in answers: drawn as MathML by the browser; hostile ones stay text, and money stays money."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import Visitor, answer_with, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")

SOURCE = "**/vendor/temml.js"


async def _answered(site: Running, visitor: Visitor, text: str) -> Page:
    """The page of somebody whose model answers with a text."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await answer_with(page, f"{text}\n\nThe end.")
    await visitor.ask("Which formula is it?")
    await expect(page.locator(".markdown > :last-child")).to_have_text("The end.")
    return page


async def test_formulas_are_drawn(site: Running, visitor: Visitor) -> None:
    r"""In $…$, \(…\), \[…\] and $$…$$, in a line or in lines of their own, also in a list."""
    text = (
        "Energy is $E = mc^2$, a root \\(\\sqrt{x_1}\\) and\n$$\n\\frac{a}{b}\n$$\nor "
        "\\[ \\sum_{i=1}^n i \\]\n\n- then $$\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}$$\n"
        "- \\[\n  \\sideset{_1^2}{_3^4}\\prod\n  \\]"
    )
    page = await _answered(site, visitor, text)
    maths = page.locator(".markdown math")
    await expect(maths).to_have_count(6)
    await expect(page.locator(".markdown msqrt")).to_have_count(1)
    await expect(page.locator(".markdown mfrac")).to_have_count(1)
    await expect(page.locator(".markdown code:visible")).to_have_count(0)
    for index in range(6):
        box = await maths.nth(index).bounding_box()
        assert box and box["width"] > 5 and box["height"] > 5


LINES = ("overline", "underline", "cancel", "bcancel", "xcancel", "sout", "fbox", "angl", "longdiv", "phase")


async def test_lines_of_formulas(site: Running, visitor: Visitor) -> None:
    r"""What a line says is seen, though not every browser draws it: $\overline{z}$ isn't z."""
    formulas = [*(f"$\\{name}{{z}}$" for name in LINES), "$z$", "$\\text{z}$"]
    page = await _answered(site, visitor, "\n\n".join(formulas))
    maths = page.locator(".markdown math")
    await expect(maths).to_have_count(len(formulas))
    drawn = [await maths.nth(index).screenshot() for index in range(len(formulas))]
    assert len(set(drawn)) == len(drawn)


async def test_what_is_no_formula(site: Running, visitor: Visitor) -> None:
    """Prices and variables of a shell stay as they are, and nothing is loaded for them."""
    text = (
        "A ferry is $5 or $10, a tour US$7–US$9. Set $HOME/$PATH or `$x$`; it is 3$.\n\n"
        "```\n$$\na\n$$\n```\n\nand \\$4$, $ x $"
    )
    loaded: list[str] = []
    visitor.context.on("request", lambda request: loaded.append(request.url))
    page = await _answered(site, visitor, text)
    await expect(page.locator(".markdown")).to_contain_text("$5 or $10, a tour US$7–US$9. Set $HOME/$PATH")
    await expect(page.locator(".markdown")).to_contain_text("and $4$, $ x $")
    await expect(page.locator(".formula")).to_have_count(0)
    assert [url for url in loaded if "temml" in url] == []


HOSTILE = (
    "\\href{javascript:document.title='caught'}{x}",
    "\\includegraphics{https://evil.example/p.png}",
    "\\def\\a{\\b\\b}\\def\\b{\\c\\c}\\def\\c{\\a\\a}\\a",
    "\\htmlStyle{position:fixed}{x}",
    "\\class{dialog}{x}",
    "{" * 3000,
    "\\unknown{x}",
    "\\def\\a{" + "x" * 100 + "}" + "\\a" * 100,
    "\\newcommand{\\a}[1]{#1#1#1}\\a{\\a{\\a{x}}}",
    "\\let\\a\\sum\\a",
    "\\cancel{" * 400 + "x" + "}" * 400,
    "\\overline{" * 300 + "x" + "}" * 300,
)


async def test_hostile_formulas(site: Running, visitor: Visitor) -> None:
    """What would be a link, a picture, a style, endless, could stand for a million letters, or takes seconds
    to draw is shown as its source; a formula takes no name of the page, and draws nothing outside the answer.
    """
    lines = [f"$$ {formula} $$" for formula in HOSTILE]
    lines += ["$$ \\label{main} x \\ref{main} $$", "$$ \\rule{9000em}{9000em} \\kern{-900em} x $$"]
    page = await _answered(site, visitor, "\n\n".join([*lines, "$$ y $$"]))
    await expect(page.locator(".markdown mi", has_text="y")).to_have_count(1)
    await expect(page.locator(".formula code:visible")).to_have_count(len(HOSTILE))
    for barred in ("img", "script", "[href]", "[id]", "[src]"):
        await expect(page.locator(f".formula {barred}")).to_have_count(0)
    assert "caught" not in await page.title()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tall = await page.locator(".markdown").bounding_box()
    assert tall and tall["height"] < 9000


async def test_formulas_that_cannot_be_drawn(site: Running, visitor: Visitor) -> None:
    """Where the library can't be loaded, the answer is there with the formula's source."""
    await visitor.context.route(SOURCE, lambda route: route.fulfill(status=404))
    page = await _answered(site, visitor, "Energy is $E = mc^2$.")
    await expect(page.locator(".formula code")).to_have_text("$E = mc^2$")
