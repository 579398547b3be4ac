"""The documents in two languages: their contents match."""

import ast
import re
from pathlib import Path

import pytest

import isthmus.a2a
from isthmus.a2a import Hosting
from isthmus.a2a.options import Skill
from isthmus.a2a.protocol.extension import URI, activated_by_card
from isthmus.models.scripted.script_file import STEP_NAMES, parse_script
from support.vocabulary import published_proto

ROOT = Path(__file__).resolve().parents[2]
PAIRS = [("README.md", "README.zh-CN.md"), ("docs/reference/protocol.md", "docs/reference/protocol.zh-CN.md")]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def code(document: str) -> set[str]:
    """Return the names in a document: its text in back-ticks, without code blocks, whose comments are translated."""
    without_blocks = re.sub(r"```.*?```", "", document, flags=re.DOTALL)
    return {" ".join(found.split()) for found in re.findall(r"`([^`]+)`", without_blocks)}


@pytest.mark.requirement("ZH-003")
@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_the_chinese_document_names_the_same_things(english: str, chinese: str) -> None:
    assert code(text(chinese)) == code(text(english))


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_the_chinese_document_has_the_same_parts(english: str, chinese: str) -> None:
    def shape(name: str) -> list[str]:
        return [found.group(0) for found in re.finditer(r"^(#+|```|\|---)", text(name), flags=re.MULTILINE)]

    assert shape(chinese) == shape(english)


def anchors(document: str) -> set[str]:
    """Return the anchors of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.+?) *$", re.sub(r"```.*?```", "", document, flags=re.DOTALL), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")]
)


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_to_a_file_and_a_heading(name: str) -> None:
    missing: list[str] = []
    for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text(name)):
        if "://" in link or link.startswith("mailto:"):
            continue
        target = (ROOT / name).parent / link if link else ROOT / name
        if not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            missing.append(f"{link}#{anchor}")
    assert missing == []


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_program_in_the_readme_runs_as_it_stands(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[object] = []
    monkeypatch.setattr(isthmus.a2a, "serve", served.append, raising=False)
    for program in re.findall(r"```python\n(.*?)```", text(name), flags=re.DOTALL):
        exec(compile(program, name, "exec"), {"__name__": "program"})  # noqa: S102 - a program of our own
    assert [type(agent).__name__ for agent in served] == ["EchoAgent"]


@pytest.mark.requirement("ZH-001")
def test_a_card_in_chinese_activates_the_extension_all_the_same() -> None:
    card = {
        "name": "Gemini CLI Agent",
        "description": "一个根据自然语言指令生成代码的代理。",
        "capabilities": {
            "streaming": True,
            "extensions": [
                {
                    "uri": URI,
                    "description": "用于交互式开发任务的扩展",
                    "required": True,
                }
            ],
        },
    }
    assert activated_by_card(card).uri == URI


@pytest.mark.requirement("ZH-002")
def test_a_confirmation_request_has_the_fields_of_both_texts() -> None:
    fields = {field.name: field.number for field in published_proto().messages["ConfirmationRequest"]}
    own = {name for name, number in fields.items() if number > 100}
    assert own == {"words_option", "wants", "risks"}, "beside those of the document"
    assert own <= code(text("docs/reference/protocol.md"))
    assert {name: number for name, number in fields.items() if name not in own} == {
        "options": 1,
        "execute_details": 2,
        "file_edit_details": 3,
        "mcp_details": 4,
        "generic_details": 5,
    }


@pytest.mark.requirement("MCP-137")
def test_the_guide_to_mcp_servers_warns_of_trust_of_tokens_and_of_broad_ones() -> None:
    guide = " ".join(text("docs/how-to/mcp.md").split())
    assert "give it to servers you wrote, or would run unread" in guide
    assert "is in the server's hands" in guide
    assert "a personal access token that reaches everything" in guide


def test_the_script_in_the_reference_of_the_scripted_model_is_one() -> None:
    page = "docs/reference/scripted-model.md"
    (yaml,) = re.findall(r"```yaml\n(.*?)```", text(page), flags=re.DOTALL)
    script = parse_script(yaml, page)
    assert [len(scenario.replies) for scenario in script.scenarios] == [2, 1]
    assert set(STEP_NAMES) <= code(text(page))


def test_the_page_for_authors_shows_skills_and_versions_of_a_card() -> None:
    page = text("docs/how-to/your-own-agent.md")
    (block,) = (each for each in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S) if "Skill(" in each)
    hosting = eval(block, {"Hosting": Hosting, "Skill": Skill})  # noqa: S307 - the page is our own
    assert isinstance(hosting, Hosting)
    assert [skill.id for skill in hosting.skills] == ["forecast"]
    assert hosting.versions == ("1.0",)
    assert "`Skill` is in `isthmus.a2a.options`" in page


def test_the_page_about_conformance_says_which_cards_the_kit_of_1_0_is_given() -> None:
    assert '`Hosting(versions=("1.0",))`' in text("docs/reference/conformance.md")
    assert 'versions=(version,) if version == "1.0"' in text("scripts/conformance/a2a_agent.py")


def test_every_module_that_the_architecture_and_tasks_name_by_path_exists() -> None:
    named = {path for path in code(text("docs/ARCHITECTURE.md")) if re.fullmatch(r"isthmus/[\w/]+\.py", path)}
    assert len(named) > 20
    of_tasks = {path for path in code(text("docs/explanation/tasks.md")) if re.fullmatch(r"[\w/]+\.py", path)}
    assert len(of_tasks) > 8
    named |= {f"isthmus/{path}" for path in of_tasks}
    assert [path for path in sorted(named) if not (ROOT / "src" / path).exists()] == []


def test_the_architecture_is_short_and_its_tree_comes_first() -> None:
    page = text("docs/ARCHITECTURE.md")
    assert len(page.split()) <= 2_500
    assert len(page.partition("```")[0].split()) <= 60


def test_documents_show_each_picture_of_the_workbench_that_is_made() -> None:
    source = ast.parse(text("scripts/workbench_pictures.py"))
    values = [
        each.value
        for each in source.body
        if isinstance(each, ast.Assign) and [ast.unparse(one) for one in each.targets] == ["NAMES"]
    ]
    made = {f"workbench-{name}.webp" for name in ast.literal_eval(values[0])}
    shown = {name for page in PAGES for name in re.findall(r"pictures/(workbench-[\w.-]+)", text(page))}
    assert shown == made
    kept = {path.name: path.stat().st_size for path in (ROOT / "docs" / "pictures").glob("workbench-*")}
    assert kept.keys() == made
    assert max(kept.values()) <= 120_000
