"""The readable text of a page, and its time on hostile ones."""

import time

import pytest

from isthmus.text.html_text import html_text, page_title


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<h2>One</h2><p>Two  three\n four<br>five</p>", "## One\n\nTwo three four\nfive"),
        ("<ul><li>a</li><li>b &lt; c</ul>d", "- a\n- b < c\n\nd"),
        ("<pre>a\n  b &amp;\n\nc</pre>", "```\na\n  b &\n\nc\n```"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a | b\nc"),
        ("x<script>if (a < b) '</p>'</script>y<style>p {}</style><!-- z -->", "xy"),
        ("<head><title>t</title><meta></head><body>b</body>", "b"),
        ("<a href='../c?d=e&amp;f'>go</a> <a href='#x'>here</a> <a>no</a>", "[go](https://h/c?d=e&f) here no"),
        ("<A HREF=//other/>up</A>", "[up](https://other/)"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("<textarea>a <b> c</textarea>", "a <b> c"),
        ("before <!-- never ends", "before"),
        ("before <p never ends", "before"),
        ("before <script> never ends", "before"),
        ("<!DOCTYPE html><?xml x?>a", "a"),
        ("", ""),
    ],
)
def test_a_page_reads_as_simple_markdown(page: str, text: str) -> None:
    assert html_text(page, "https://h/a/b") == text


def test_the_title_is_one_line() -> None:
    assert page_title("<title lang=en>\n A\n &amp; B </title>") == "A & B"
    assert page_title("<p>none") == ""


@pytest.mark.parametrize(
    "piece",
    ["<", "<!--", "<a href=", "</", "<p ", "&", "<li>", "<script>", "<a href='x'>", "<!", "<pre>", "href="],
)
def test_a_hostile_page_takes_time_in_proportion(piece: str) -> None:
    began = time.process_time()
    html_text(piece * (250_000 // len(piece)), "https://h/")
    assert time.process_time() - began < 3
