// Drives an A2A server with the official JavaScript client: a prompt, the answer to its question, and what came.
//   node drive_a2a.mjs URL WORKSPACE EXTENSION_URI BINDING     (the token in ISTHMUS_A2A_TOKEN)
// BINDING is JSONRPC or HTTP+JSON.
// Prints one JSON object: the card's name, the events of both streams, and the task afterwards.
import { A2AClient, RestTransport } from "@a2a-js/sdk/client";

const [url, workspace, extension, binding] = process.argv.slice(2);

const authorizedFetch = (input, init = {}) =>
  fetch(input, {
    ...init,
    headers: {
      ...init.headers,
      Authorization: `Bearer ${process.env.ISTHMUS_A2A_TOKEN}`,
      "X-A2A-Extensions": extension,
    },
  });

const isRest = binding === "HTTP+JSON";
const client = isRest
  ? new RestTransport({ endpoint: url, fetchImpl: authorizedFetch })
  : await A2AClient.fromCardUrl(new URL(".well-known/agent-card.json", url).href, { fetchImpl: authorizedFetch });
const card = await (isRest ? client.getExtendedAgentCard() : client.getAgentCard());
// JSON-RPC gives whole answers, and HTTP+JSON results or exceptions.
const result = (answer) => (isRest ? answer : (answer.result ?? answer.error)) ?? null;

async function send(message) {
  const events = [];
  for await (const event of client.sendMessageStream({
    message: { kind: "message", role: "user", messageId: crypto.randomUUID(), ...message },
  })) {
    events.push(event);
  }
  return events;
}

const asked = await send({
  parts: [{ kind: "text", text: "Write a greeting" }],
  metadata: { [extension]: { workspace_path: workspace } },
});
const task = asked[0];
const question = asked.at(-1).status.message.parts[0].data;
const answered = await send({
  taskId: task.id,
  parts: [
    {
      kind: "data",
      data: {
        tool_call_id: question.tool_call_id,
        selected_option_id: question.confirmation_request.options[0].id,
        file_details: { new_content: "changed by the user\n" },
      },
    },
  ],
});
const afterwards = await client.getTask({ id: task.id });
const refused = await client.getTask({ id: "unknown" }).then(
  (answer) => answer.error,
  (error) => ({ code: error.constructor.name === "TaskNotFoundError" ? -32001 : String(error) }),
);
const replayed = [];
for await (const event of client.resubscribeTask({ id: task.id })) {
  replayed.push(event);
}
const target = { taskId: task.id, pushNotificationConfig: { id: "p", url: "https://1.1.1.1/hook" } };
const pushes = [
  await client.setTaskPushNotificationConfig(target),
  await client.getTaskPushNotificationConfig({ id: task.id, pushNotificationConfigId: "p" }),
  await client.listTaskPushNotificationConfig({ id: task.id }),
  await client.deleteTaskPushNotificationConfig({ id: task.id, pushNotificationConfigId: "p" }),
].map(result);
const other = await send({
  parts: [{ kind: "text", text: "Write a greeting" }],
  metadata: { [extension]: { workspace_path: workspace } },
});
const canceled = result(await client.cancelTask({ id: other[0].id }));

process.stdout.write(
  JSON.stringify({
    name: card.name,
    asked,
    answered,
    task: result(afterwards),
    refused,
    replayed,
    pushes,
    canceled,
  }) + "\n",
);
