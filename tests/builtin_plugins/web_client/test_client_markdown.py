"""Answers in Markdown: what CommonMark says, with the marks of the platform, and nothing that takes long."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from kernel.testing import Running
from tests.builtin_plugins.web_client.visits import Visitor, answer_with, knowledge_base

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIBRARY = "**/vendor/markdown-it.js"

# What stands below each heading of the sixth level, without attributes that only concern looks.
SECTIONS = """(box) => {
  const kept = ["href", "title", "start"];
  const found = [];
  for (const part of box.cloneNode(true).children) {
    if (part.matches("h6")) found.push("");
    else if (found.length) {
      for (const one of [part, ...part.querySelectorAll("*")])
        for (const { name } of [...one.attributes]) if (!kept.includes(name)) one.removeAttribute(name);
      found[found.length - 1] += part.outerHTML;
    }
  }
  return found;
}"""

A = '<a href="https://a.example/x">'
COMMON_MARK = {
    # Links
    "[a](https://a.example/x)": f"<p>{A}a</a></p>",
    '[a](https://a.example/x "A title")': '<p><a href="https://a.example/x" title="A title">a</a></p>',
    "[a](https://a.example/x 'A title')": '<p><a href="https://a.example/x" title="A title">a</a></p>',
    "[a](https://a.example/x_(y))": '<p><a href="https://a.example/x_(y)">a</a></p>',
    "[a](<https://a.example/x y>)": '<p><a href="https://a.example/x%20y">a</a></p>',
    "[a [b] c](https://a.example/x)": f"<p>{A}a [b] c</a></p>",
    "[**a** `b`](https://a.example/x)": f"<p>{A}<strong>a</strong> <code>b</code></a></p>",
    "<https://a.example/x>": f"<p>{A}https://a.example/x</a></p>",
    "See https://a.example/x.": f"<p>See {A}https://a.example/x</a>.</p>",
    "(https://a.example/x)": f"<p>({A}https://a.example/x</a>)</p>",
    "https://a.example/x_(y)": '<p><a href="https://a.example/x_(y)">https://a.example/x_(y)</a></p>',
    "[a][one]\n\n[one]: https://a.example/x 'T'": '<p><a href="https://a.example/x" title="T">a</a></p>',
    "[two][]\n\n[two]: https://a.example/x": f"<p>{A}two</a></p>",
    "[three]\n\n[three]: https://a.example/x": f"<p>{A}three</a></p>",
    "[a](javascript:alert(1))": "<p>[a](javascript:alert(1))</p>",
    "[a](data:text/html,x)": "<p>[a](data:text/html,x)</p>",
    "[a](/app/people)": "<p>[a](/app/people)</p>",
    "www.a.example and ada@a.example": "<p>www.a.example and ada@a.example</p>",
    # No picture is loaded from anywhere: it is a link by its alternative text.
    "![a *b*](https://a.example/x)": f"<p>{A}a b</a></p>",
    "![](https://a.example/x)": f"<p>{A}https://a.example/x</a></p>",
    "[![a](https://b.example/p)](https://a.example/x)": f"<p>{A}a</a></p>",
    # Emphasis
    "*a* _b_ **c** __d__ ***e***": "<p><em>a</em> <em>b</em> <strong>c</strong> <strong>d</strong> "
    "<em><strong>e</strong></em></p>",
    "**a\nb**": "<p><strong>a<br>b</strong></p>",
    "**a *b* c**": "<p><strong>a <em>b</em> c</strong></p>",
    "a*b*c a_b_c": "<p>a<em>b</em>c a_b_c</p>",
    "* a *": "<ul><li>a *</li></ul>",
    "~~a~~": "<p><s>a</s></p>",
    # Escapes and entities
    r"\*a\* \_b\_ \! \< \> \. \-": "<p>*a* _b_ ! &lt; &gt; . -</p>",
    "a\\\nb": "<p>a<br>b</p>",
    "&copy; &amp; &#228; &lt;b&gt; &nbsp;c": "<p>© &amp; ä &lt;b&gt; &nbsp;c</p>",
    "`&copy;` and `` `a` ``": "<p><code>&amp;copy;</code> and <code>`a`</code></p>",
    "<b>a</b> <script>x</script>": "<p>&lt;b&gt;a&lt;/b&gt; &lt;script&gt;x&lt;/script&gt;</p>",
    "a<br>b<br />c": "<p>a<br>b<br>c</p>",
    # Headings
    "A *b*\n===": "<h3>A <em>b</em></h3>",
    "A\n---": "<h4>A</h4>",
    "## A ##": "<h4>A</h4>",
    "#hash": "<p>#hash</p>",
    # Quotes
    "> a\n> b\n>\n> c": "<blockquote><p>a<br>b</p><p>c</p></blockquote>",
    "> - a\n>   - b\n> - c": "<blockquote><ul><li>a<ul><li>b</li></ul></li><li>c</li></ul></blockquote>",
    "> a\n> > b": "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>",
    "> ```\n> a\n> ```": "<blockquote><pre><code>a\n</code></pre></blockquote>",
    # Lists
    "- a\n\n  b\n- c": "<ul><li><p>a</p><p>b</p></li><li><p>c</p></li></ul>",
    "3. a\n4. b": '<ol start="3"><li>a</li><li>b</li></ol>',
    "- > a": "<ul><li><blockquote><p>a</p></blockquote></li></ul>",
    "- [x] a\n- [ ] b": "<ul><li>☑ a</li><li>☐ b</li></ul>",
    # Code and tables
    "    a *b*\n      c": "<pre><code>a *b*\n  c\n</code></pre>",
    "~~~py\na\n```\n~~~": "<pre><code>a\n```\n</code></pre>",
    "|a|b|\n|-|-:|\n|`c`|d \\| e|": "<div><table><thead><tr><th>a</th><th>b</th></tr></thead>"
    "<tbody><tr><td><code>c</code></td><td>d | e</td></tr></tbody></table></div>",
    "***": "<hr>",
    # Citations of sources that are not there stay as they are, and are no definitions of links.
    "a [1][2], [3]": "<p>a [1][2], [3]</p>",
    "[7]: https://a.example/x": f"<p>[7]: {A}https://a.example/x</a></p>",
    "https://a.example/x[1]": f"<p>{A}https://a.example/x</a>[1]</p>",
    "[1](https://a.example/x)": f"<p>{A}1</a></p>",
    "[see [1]](https://a.example/x)": f"<p>{A}see [1]</a></p>",
}


async def _answered(site: Running, visitor: Visitor, text: str) -> Page:
    """The page of somebody whose model answers with a text."""
    ana = await site.user()
    await knowledge_base(ana)
    page = await visitor.arrive(ana)
    await answer_with(page, text)
    await visitor.ask("Which hotels are there?")
    await expect(page.locator(".markdown > :last-child")).to_contain_text("The end.")
    return page


async def test_common_mark(site: Running, visitor: Visitor) -> None:
    """Links, emphasis, escapes, headings, quotes, lists, code and tables are what the specification says."""
    text = "# Top\n\n" + "".join(f"###### Case\n\n{case}\n\n" for case in COMMON_MARK)
    page = await _answered(site, visitor, f"{text}# The end.")
    await expect(page.locator(".markdown h6")).to_have_count(len(COMMON_MARK))
    shown = await page.locator(".markdown").evaluate(SECTIONS)
    last = shown.pop().removesuffix("<h3>The end.</h3>")
    found = dict(zip(COMMON_MARK, [*shown, last], strict=True))
    assert found == COMMON_MARK


async def test_links_leave_the_client(site: Running, visitor: Visitor) -> None:
    """Each opens a tab of its own that knows nothing of this one, and nothing is loaded for a picture."""
    loaded: list[str] = []
    visitor.context.on("request", lambda request: loaded.append(request.url))
    text = "![p](https://evil.example/p.png) <https://evil.example/a> https://evil.example/b\n\nThe end."
    page = await _answered(site, visitor, text)
    links = page.locator(".markdown a")
    await expect(links).to_have_count(3)
    for index in range(3):
        await expect(links.nth(index)).to_have_attribute("rel", "noreferrer noopener")
        await expect(links.nth(index)).to_have_attribute("target", "_blank")
    await expect(page.locator(".markdown img")).to_have_count(0)
    assert [url for url in loaded if "evil.example" in url] == []


async def test_marks_nested_without_end(site: Running, visitor: Visitor) -> None:
    """Thousands of marks in one another are drawn a hundred deep; their text is all there."""
    text = "*a **b " * 5_000 + "c** d* " * 5_000 + "\n\n" + "> " * 20_000 + "e\n\nThe end."
    page = await _answered(site, visitor, text)
    assert (await page.locator(".markdown").inner_text()).count("b") == 5_000
    depth = """(box) => {
      let deepest = 0;
      const walk = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
      while (walk.nextNode()) {
        let depth = 0;
        for (let one = walk.currentNode; one !== box; one = one.parentNode) depth += 1;
        deepest = Math.max(deepest, depth);
      }
      return deepest;
    }"""
    assert 10 < await page.locator(".markdown").evaluate(depth) < 250


async def test_an_answer_without_the_library(site: Running, visitor: Visitor) -> None:
    """If the library can't be loaded, the answer is shown as plain text."""
    await visitor.context.route(LIBRARY, lambda route: route.fulfill(status=404))
    page = await _answered(site, visitor, "A **hotel**\n\nThe end.")
    await expect(page.locator(".markdown")).to_have_text("A **hotel**\n\nThe end.", use_inner_text=True)
