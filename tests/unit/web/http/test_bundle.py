from pathlib import Path

import pytest

from isthmus.web.http.bundle import CONTENT_POLICY, Bundle, BundleMissingError, read_bundle


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html>" + "x" * 1000)
    (tmp_path / "assets" / "index-abc.js").write_text("let a = 1;")
    (tmp_path / "icon.svg").write_text("<svg/>")
    return read_bundle(tmp_path)


def test_every_file_is_found_by_its_path_and_says_what_it_is(bundle: Bundle) -> None:
    script = bundle.find("/ui/assets/index-abc.js")
    assert script is not None
    assert (script.content, script.media_type) == (b"let a = 1;", "text/javascript; charset=utf-8")
    assert "immutable" in script.headers["Cache-Control"]
    page = bundle.find("/ui/index.html")
    assert page is not None
    assert page.headers["Cache-Control"] == "no-cache"
    assert len(page.compressed) < len(page.content)


@pytest.mark.parametrize(
    "address", ["/ui/", "/ui/task/1-2", "/ui/history", "/ui/session/a.b%2F/turn/4", "/ui/question/t/call-1.2"]
)
def test_addresses_of_the_page_are_the_page(bundle: Bundle, address: str) -> None:
    assert bundle.find(address) == bundle.find("/ui/index.html")


@pytest.mark.parametrize(
    "path", ["/ui/../pages.py", "/ui/missing.js", "/ui//etc/passwd", "/ui/assets/../index.html", "/etc/passwd", "/"]
)
def test_other_paths_are_nothing(bundle: Bundle, path: str) -> None:
    assert bundle.find(path) is None


def test_files_are_served_with_a_policy_without_exceptions(bundle: Bundle) -> None:
    for file in bundle.files.values():
        assert file.headers["Content-Security-Policy"] == CONTENT_POLICY
        assert file.headers["X-Content-Type-Options"] == "nosniff"
    assert "unsafe" not in CONTENT_POLICY
    assert "*" not in CONTENT_POLICY
    assert "frame-ancestors 'none'" in CONTENT_POLICY


def test_a_page_that_is_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    with pytest.raises(BundleMissingError, match="make frontend"):
        read_bundle(tmp_path)


@pytest.mark.parametrize(
    ("page", "entry"),
    [
        (
            '<script type="module" crossorigin src="/ui/assets/index-a_B-1.js"></script>',
            "/ui/assets/index-a_B-1.js",
        ),
        ("<p>none", ""),
        ('<script type="module" src="https://elsewhere.test/x.js"></script>', ""),
    ],
)
def test_the_entry_is_the_script_that_the_page_begins_with(tmp_path: Path, page: str, entry: str) -> None:
    (tmp_path / "index.html").write_text(page, "utf-8")
    assert read_bundle(tmp_path).entry == entry


def test_the_page_of_a_server_below_a_path_links_to_files_there(tmp_path: Path) -> None:
    script = '<script type="module" crossorigin src="/ui/assets/index-a.js"></script>'
    (tmp_path / "index.html").write_text(f'<link rel="icon" href="/ui/icon.svg" />{script}', "utf-8")
    (tmp_path / "icon.svg").write_text("<svg/>")
    bundle = read_bundle(tmp_path)
    below = bundle.below('/team/"a"')
    page = below.find("/ui/task/1")
    assert page is not None
    before = "/team/&quot;a&quot;/ui"
    moved = script.replace("/ui", before)
    assert page.content.decode() == f'<link rel="icon" href="{before}/icon.svg" />{moved}'
    assert page.etag != bundle.files["/ui/index.html"].etag
    assert bundle.below("/agent").entry == "/agent/ui/assets/index-a.js"
    assert below.find("/ui/icon.svg") is bundle.find("/ui/icon.svg")
    assert bundle.below("") is bundle
