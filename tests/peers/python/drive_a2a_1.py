"""Drives an A2A server with the official Python client 1.3: a prompt, its question, and all other client requests.

    python drive_a2a_1.py URL WORKSPACE EXTENSION_URI BINDING VERSION     (the token in ISTHMUS_A2A_TOKEN)

BINDING is JSONRPC or HTTP+JSON, VERSION is 1.0 or 0.3. Prints one JSON object. Runs in an environment of its own, since
a2a-sdk 1.3 and 0.3 cannot be in one; `make peers` makes it.
"""

import asyncio
import json
import os
import sys
import uuid
from typing import Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, create_client
from a2a.client.client import ClientCallContext
from a2a.client.service_parameters import ServiceParametersFactory, with_a2a_extensions
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict, ParseDict

url, workspace, extension, binding, version = sys.argv[1:]


def shown(message: Any) -> Any:
    """Return a protobuf message as JSON."""
    return MessageToDict(message)


def request(**message: Any) -> pb.SendMessageRequest:
    """Return a request with a message of the user."""
    content = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", **message}
    return ParseDict({"message": content}, pb.SendMessageRequest())


async def attempt(action: Any) -> Any:
    """Return the outcome of a request: its result, or the name and the text of its error."""
    try:
        return shown(await action)
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}


async def main() -> None:
    """Run the client with the arguments of the command line."""
    headers = {"Authorization": f"Bearer {os.environ['ISTHMUS_A2A_TOKEN']}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=30) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        offered = [shown(each) for each in card.supported_interfaces]
        kept = [
            each
            for each in card.supported_interfaces
            if (each.protocol_binding, each.protocol_version) == (binding, version)
        ]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(kept)
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding])
        client = await create_client(card, config)
        context = ClientCallContext(
            service_parameters=ServiceParametersFactory.create([with_a2a_extensions([extension])])
        )

        async def stream(items: Any) -> list[Any]:
            return [shown(item) async for item in items]

        first = request(parts=[{"text": "Write a greeting"}], metadata={extension: {"workspace_path": workspace}})
        asked = await stream(client.send_message(first, context=context))
        task = asked[0]["task"]
        question = asked[-1]["statusUpdate"]["status"]["message"]["parts"][0]["data"]
        answer = {
            "tool_call_id": question["tool_call_id"],
            "selected_option_id": question["confirmation_request"]["options"][0]["id"],
            "file_details": {"new_content": "changed by the user\n"},
        }
        waiting = await stream_until_question(client, task["id"], context)
        answered = await stream(
            client.send_message(
                request(taskId=task["id"], contextId=task["contextId"], parts=[{"data": answer}]), context=context
            )
        )
        got = await attempt(client.get_task(pb.GetTaskRequest(id=task["id"]), context=context))
        unknown = await attempt(client.get_task(pb.GetTaskRequest(id="unknown"), context=context))
        listed = await attempt(client.list_tasks(pb.ListTasksRequest(page_size=1), context=context))
        finished = await attempt(client.cancel_task(pb.CancelTaskRequest(id=task["id"]), context=context))
        extended = await attempt(client.get_extended_agent_card(pb.GetExtendedAgentCardRequest(), context=context))
        target = pb.TaskPushNotificationConfig(task_id=task["id"], id="p", url="https://1.1.1.1/hook", token="secret")
        of_task = {"task_id": task["id"], "id": "p"}
        pushes = {
            "set": await attempt(client.create_task_push_notification_config(target, context=context)),
            "get": await attempt(
                client.get_task_push_notification_config(
                    pb.GetTaskPushNotificationConfigRequest(**of_task), context=context
                )
            ),
            "list": await attempt(
                client.list_task_push_notification_configs(
                    pb.ListTaskPushNotificationConfigsRequest(task_id=task["id"]), context=context
                )
            ),
        }
        try:
            await client.delete_task_push_notification_config(
                pb.DeleteTaskPushNotificationConfigRequest(**of_task), context=context
            )
            pushes["delete"] = {}
        except Exception as error:
            pushes["delete"] = {"error": type(error).__name__, "message": str(error)}

        second = await stream(client.send_message(first_again(), context=context))
        canceled = await attempt(client.cancel_task(pb.CancelTaskRequest(id=second[0]["task"]["id"]), context=context))
        found = {
            "offered": offered,
            "asked": asked,
            "waiting": waiting,
            "answered": answered,
            "task": got,
            "unknown": unknown,
            "listed": listed,
            "finished": finished,
            "extended": extended,
            "pushes": pushes,
            "canceled": canceled,
        }
        print(json.dumps(found), flush=True)


def first_again() -> pb.SendMessageRequest:
    """Return the same prompt in another session."""
    return request(parts=[{"text": "Write a greeting"}], metadata={extension: {"workspace_path": workspace}})


async def stream_until_question(client: Any, task_id: str, context: ClientCallContext) -> Any:
    """Return the first item of a subscription to a task that waits: the task."""
    async for item in client.subscribe(pb.SubscribeToTaskRequest(id=task_id), context=context):
        return shown(item)
    return None


asyncio.run(main())
