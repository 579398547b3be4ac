"""Checks of one page of the workbench as it stands: foreign words, axe, its width, and its controls by keyboard."""

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

FRONTEND = Path(__file__).parents[2] / "frontend"
AXE = (FRONTEND / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
NARROW = (320, 256)
"""Size of 1280x1024 pixels at 400 %."""
NAMES = frozenset("Isthmus MCP JSON TLS QR A2A iPhone git gemini qwen claude ide Chrome Linux".split())  # noqa: SIM905
"""Names of programs, protocols and formats, which each language writes alike."""

_FOREIGN = r"""known => {
  const kept = 'code, pre, kbd, samp, script, style, noscript, [dir=auto], [translate=no], .cm-content, .cm-gutters';
  const names = new Set(known), found = new Set();
  const plain = text => text.replace(/\s+/g, ' ').trim();
  const note = (text, element) => {
    // Paths, options, addresses and times do not count as words.
    const words = text.replace(/\S*[\/~_.@=]\S*|--?[a-z-]+/g, ' ').match(/[A-Za-z][A-Za-z'\u2019-]+/g) ?? [];
    const foreign = words.filter(word => !names.has(word));
    const at = element.localName + [...element.classList].map(name => '.' + name).join('');
    if (foreign.length) found.add(`${foreign.join(' ')} in ${at}: ${text.trim().slice(0, 80)}`);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!element.closest(kept) && element.checkVisibility({ visibilityProperty: true })) note(node.data, element);
  }
  for (const element of document.body.querySelectorAll('[aria-label], [title], [placeholder], [alt]')) {
    if (element.closest('[translate=no]')) continue;
    for (const name of ['aria-label', 'title', 'placeholder', 'alt']) {
      const value = element.getAttribute(name) ?? '';
      // A title that repeats a text that is cut off is judged as that text.
      if (name !== 'title' || !plain(element.innerText ?? '').startsWith(plain(value))) note(value, element);
    }
  }
  note(document.title.replace(/- Isthmus$/, ''), document.documentElement);
  return [...found];
}"""


def foreign_words(page: Page, *names: str) -> list[str]:
    """Return the Latin words that a page in Chinese shows outside of code, keys, paths and names, each with its text.

    ``names`` are words that the content of the test brings.
    """
    brought = re.findall(r"[A-Za-z][A-Za-z'\u2019-]+", " ".join(names))
    return page.evaluate(_FOREIGN, [*NAMES, *brought])


def axe_problems(page: Page, **options: Any) -> list[str]:
    """Return what axe finds wrong in a page as it is shown now."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE)
    # Nothing is loaded anew: of these rules none needs it.
    given = {"resultTypes": ["violations"], "preload": False, **(options or {"runOnly": RULES})}
    result = page.evaluate("options => axe.run(document, options)", given)
    return [
        f"{problem['id']} ({problem['impact']}): {node['html'][:200]}"
        for problem in result["violations"]
        for node in problem["nodes"][:2]
    ]


def wide_parts(page: Page) -> list[str]:
    """Return the elements that make a page wider than its window; empty if it fits."""
    return page.evaluate(
        """() => document.documentElement.scrollWidth <= innerWidth ? [] :
      [...document.body.querySelectorAll('*')].filter(one => one.getBoundingClientRect().right > innerWidth + 1)
        .slice(0, 5).map(one => one.outerHTML.slice(0, 120))"""
    )


_CONTROLS = r"""() => {
  const shown = one => one.checkVisibility({ visibilityProperty: true }) && !one.closest('[inert]');
  const all = [...document.body.querySelectorAll(
    'a[href], button:not([disabled]), input:not([disabled]), select:not([disabled]), textarea:not([disabled]), summary,'
    + '[tabindex]:not([tabindex="-1"])')].filter(one => one.tabIndex >= 0 && shown(one));
  window.walked = new Map(all.map(one => [one, false]));
  return all.length;
}"""
_AT = r"""() => {
  let at = document.activeElement;
  if (!at || at === document.body) return '';
  const host = at;
  while (at.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  // The ring may be that of a field around the control.
  const ringed = one => {
    const { outlineStyle, outlineWidth } = getComputedStyle(one);
    return outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2;
  };
  const around = [];
  for (let one = at; one && around.length < 4; one = one.parentElement) around.push(one);
  const marked = around.some(ringed);
  window.walked.set(host, true);
  const box = at.getBoundingClientRect();
  const name = at.outerHTML.slice(0, 120);
  return { name, isMarked: marked, isSeen: box.bottom > 0 && box.top < innerHeight && box.width > 0 };
}"""


def keyboard_problems(page: Page) -> list[str]:
    """Walk through a page by Tab; return controls that are not reached, have no ring of 2 px, or are out of sight."""
    page.evaluate("() => document.activeElement?.blur()")
    count: int = page.evaluate(_CONTROLS)
    found: list[str] = []
    rounds = 0
    for _ in range(2 * count + 20):
        page.keyboard.press("Tab")
        at: Any = page.evaluate(_AT)
        if not at:  # the page begins anew, as the walk began where the focus was
            rounds += 1
            if rounds == 2:
                break
            continue
        if not at["isMarked"]:
            found.append(f"no ring: {at['name']}")
        if not at["isSeen"]:
            found.append(f"out of sight: {at['name']}")
    left: list[str] = page.evaluate(
        """() => [...window.walked].filter(([one, is]) => !is && !(one.type === 'radio' && one.name))
      .map(([one]) => one.outerHTML.slice(0, 120))"""
    )
    return found + [f"not reached: {one}" for one in left]


_SMALL = r"""least => [...document.body.querySelectorAll('a[href], button, input, select, textarea, summary')]
  .filter(one => one.checkVisibility({ visibilityProperty: true }) && !one.closest('p, .prose, [inert]'))
  .map(one => /^(radio|checkbox)$/.test(one.type) ? one.labels?.[0] ?? one : one)
  .filter(one => {
    const box = one.getBoundingClientRect();
    return box.width > 1 && (box.width < least - 0.5 || box.height < least - 0.5);
  })
  .map(one => {
    const box = one.getBoundingClientRect();
    return `${Math.round(box.width)}x${Math.round(box.height)}: ${one.outerHTML.slice(0, 120)}`;
  })"""


def small_targets(page: Page, least: int) -> list[str]:
    """Return the controls that are narrower or lower than ``least`` pixels, but for links within sentences."""
    return page.evaluate(_SMALL, least)
