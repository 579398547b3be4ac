// A client written for gemini-cli-a2a-server, on the official JavaScript client: a prompt, the answer to its question.
//   node drive_coder_agent.mjs URL WORKSPACE OUTCOME     (the token in ISTHMUS_A2A_TOKEN, when there is one)
// Prints one JSON object: the events of both streams, the task afterwards, and the replay.
import { A2AClient } from "@a2a-js/sdk/client";

const [url, workspace, outcome] = process.argv.slice(2);
const token = process.env.ISTHMUS_A2A_TOKEN;

const authorizedFetch = (input, init = {}) =>
  fetch(input, { ...init, headers: { ...init.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) } });

const client = await A2AClient.fromCardUrl(new URL(".well-known/agent-card.json", url).href, {
  fetchImpl: authorizedFetch,
});

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
  parts: [{ kind: "text", text: "Write b.txt" }],
  metadata: { coderAgent: { kind: "agent-settings", workspacePath: workspace } },
});
const task = asked[0];
const waiting = asked
  .flatMap((event) => event.status?.message?.parts ?? [])
  .map((part) => part.data)
  .find((data) => data?.status === "awaiting_approval");
const answered = await send({
  taskId: task.id,
  contextId: task.contextId,
  parts: [{ kind: "data", data: { callId: waiting.request.callId, outcome } }],
});
const afterwards = await client.getTask({ id: task.id });
const replayed = [];
for await (const event of client.resubscribeTask({ id: task.id })) {
  replayed.push(event);
}

process.stdout.write(
  JSON.stringify({ asked, answered, afterwards: afterwards.result, replayed }) + "\n",
);
