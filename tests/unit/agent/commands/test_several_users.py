import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.events import TaskState
from support.command_harness import CommandHarness, OpenHarness, Ran
from support.listed_servers import notes_and_locked
from support.scripted_wire import Call, Reply

pytestmark = pytest.mark.anyio

SHARED = "the-same-session"


async def written(harness: CommandHarness, name: str, content: str) -> Ran:
    call = Call("write_file", {"file_path": str(harness.workspace / name), "content": content})
    harness.replies.append(Reply.of(call))
    return await harness.prompt(f"write {name}", SHARED)


@pytest.mark.slow
async def test_restoring_touches_no_file_of_another_user_whose_session_has_the_same_id(
    open_harness: OpenHarness,
) -> None:
    async with open_harness(policy=Policy(ApprovalMode.AUTO_EDIT)) as harness:
        alice, bob = harness.of("alice"), harness.of("bob")
        await written(alice, "alice.txt", "of alice")
        await written(bob, "bob.txt", "of bob")
        await written(harness, "mine.txt", "of the local user")
        listed = (await alice.run("/restore", SHARED)).text
        assert "alice.txt" in listed
        assert "bob.txt" not in listed
        asked = await alice.run(f"/restore {listed.split()[0]}", SHARED)
        question = asked.calls[0].confirmation_request
        assert question is not None
        assert question.generic_details is not None
        assert "bob" not in question.generic_details.description
        assert (await alice.answer(asked)).state is TaskState.COMPLETED
        assert not (harness.workspace / "alice.txt").exists()
        assert (harness.workspace / "bob.txt").read_text() == "of bob"
        assert (harness.workspace / "mine.txt").read_text() == "of the local user"
        theirs = (await bob.run("/restore", SHARED)).text.split()[0]
        refused = await alice.run(f"/restore {theirs}", SHARED)
        assert refused.end.reason == "not_restored"
        assert theirs not in (refused.end.error or "").replace(f"'{theirs}'", "")


async def test_only_the_local_user_logs_the_account_in_to_servers(open_harness: OpenHarness) -> None:
    servers = notes_and_locked()
    async with open_harness(servers=servers) as harness:
        refused = await harness.of("alice").run("/mcp auth locked")
        assert (refused.state, refused.end.reason, servers.logins) == (TaskState.FAILED, "not_yours", [])
        assert "locked" in (await harness.of("alice").run("/mcp auth")).text
        assert (await harness.run("/mcp auth locked")).state is TaskState.COMPLETED
        assert servers.logins == ["locked"]


async def test_commands_of_other_users_get_none_of_the_local_users_secrets(open_harness: OpenHarness) -> None:
    secret = {
        "GITHUB_TOKEN": "s3cr3t-1",
        "AWS_SECRET_ACCESS_KEY": "s3cr3t-2",
        "PGPASSWORD": "s3cr3t-3",
        "DB_PASS": "s3cr3t-4",
        "SSH_AUTH_SOCK": "/run/s3cr3t-5",
        "DATABASE_URL": "postgres://me:s3cr3t-6@db/x",
        "NPM_CONFIG__AUTH": "s3cr3t-7",
    }
    environment = {**secret, "JAVA_HOME": "/opt/java", "KEYBOARD": "us", "PATHS": "kept"}
    async with open_harness(policy=Policy(ApprovalMode.YOLO), environment=environment) as harness:
        seen: dict[str, str] = {}
        for user in ("", "alice"):
            harness.replies.append(Reply.of(Call("run_shell_command", {"command": "env"})))
            ran = await (harness.of(user) if user else harness).prompt("show it")
            output = ran.calls[-1].output
            assert output is not None
            seen[user] = output.text or ""
        assert all(value in seen[""] for value in secret.values())
        assert "s3cr3t" not in seen["alice"]
        assert all(text in seen["alice"] for text in ("/opt/java", "KEYBOARD=us", "PATHS=kept"))
