"""Answers by the tokens of notifications: one question, as it was shown, from one device, once."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from isthmus.a2a.server.users.users import BrowserPush, TokenEntry
from isthmus.a2a.server.users.users_file import UsersFile
from isthmus.client import PromptMessage, TaskSnapshot
from isthmus.development_tool import ToolCall
from isthmus.engine import Engine
from isthmus.events import TaskState
from isthmus.web.push.answering import PushedAnswers, QuestionGoneError, TokenRefusedError
from isthmus.web.push.pushed_facts import question_digest
from isthmus.web.push.task_facts import JournalTaskFacts
from isthmus.web.push.told_file import ToldFile
from isthmus.web.push.told_questions import (
    MAXIMUM_TOLD,
    TOKEN_SECONDS,
    AnswerToken,
    QuestionOutcome,
    ToldQuestion,
    ToldTable,
    token_digest,
)

pytestmark = pytest.mark.anyio
