from isthmus.agent.session.session import Session
from isthmus.events import Prompt
from isthmus.internal_events import ModelReply, PromptBegun, PromptChanged, PromptSection, Rewound
from isthmus.models.port.base import SESSION_UPDATE, Message, Text
from isthmus.models.port.message import message_to_json

PLANNING = PromptSection("mode", "You plan.")


def test_a_change_that_was_told_after_a_message_is_forgotten_when_it_is_rewound() -> None:
    session = Session("c")
    answer = message_to_json(Message("assistant", (Text("Yes."),)))
    session.apply(Prompt("p1", "One"), "t1")
    session.apply(PromptBegun("openai:m", (PromptSection("mode", "You work."),)))
    session.apply(ModelReply("m", "m", answer, 10, 1))
    session.apply(Prompt("p2", "Two"), "t2")
    session.apply(PromptChanged(f"{SESSION_UPDATE}\nYou plan.\n</session_update>", (PLANNING,)))
    assert session.prefixes["openai:m"].told == {"mode": "You plan."}
    session.apply(Rewound(2))
    assert session.prefixes["openai:m"].told == {"mode": "You work."}
    assert not session.prefixes["openai:m"].has_stale_changes
    assert [message.role for message in session.messages] == ["user", "assistant"]
