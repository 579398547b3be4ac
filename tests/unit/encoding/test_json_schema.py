"""The imports of the JSON Schema validator, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

USERS = {
    "itself": """
from isthmus.encoding.json_schema import draft_2020_12
validator = draft_2020_12()({"type": "integer"})
assert validator.is_valid(1) and not validator.is_valid("1")
""",
    "schemas of answers": """
from isthmus.terminal.headless.answer_validator import AnswerValidator
validator = AnswerValidator({"type": "integer"})
assert validator.problem(1) is None and validator.problem("1") is not None
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("user", USERS)
def test_the_grammar_of_a_format_is_not_imported_and_stays_importable(user: str, tmp_path: Path) -> None:
    (tmp_path / "rfc3987_syntax.py").write_text("raise RuntimeError('it takes a second')", encoding="utf-8")
    imported = "import sys\nassert 'rfc3987_syntax' not in sys.modules\nprint('used')\nimport rfc3987_syntax"
    program = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n{USERS[user]}\n{imported}"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8", check=False)
    assert ran.stderr.splitlines()[-1] == "RuntimeError: it takes a second", ran.stderr
    assert ran.stdout == "used\n"
