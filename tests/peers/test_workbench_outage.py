"""The workbench while its database is away, in a real browser: the page says so, and goes on when it is back."""

from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from support.postgres import Postgres, postgres
from support.workbench import Workbench, workbench

SCRIPT = """
name: practice
scenarios:
  - prompt: '.'
    replies:
      - text: 'You said: {{prompt}}'
"""


@pytest.fixture
def database() -> Generator[Postgres]:
    with postgres(is_durable=True) as server:
        yield server


@pytest.fixture
def served(tmp_path: Path, workspace: Path, database: Postgres) -> Generator[Workbench]:
    with workbench(tmp_path, workspace, SCRIPT, "--journal", database.database()) as found:
        yield found


@pytest.mark.extended
@pytest.mark.timeout(180)
def test_the_page_says_that_the_database_is_away_and_goes_on(
    served: Workbench, database: Postgres, browser: Browser
) -> None:
    page = served.watched(served.let_in(browser))
    served.prompt(page, "tide tables of the harbour")
    page.goto(f"{served.url}ui/history")
    status = page.locator("footer [role=status]")
    expect(status).to_have_text("Connected")
    database.stop("immediate")
    expect(status).to_have_text("Reconnecting")
    page.get_by_role("searchbox").fill("harbour")
    expect(page.locator(".problem")).to_contain_text("The server cannot do this at the moment")
    database.start()
    expect(status).to_have_text("Connected")
    expect(page.locator(".problem")).to_have_count(0)
    expect(page.locator("main .rows")).to_contain_text("tide tables")
