// Drives an A2A server with the official JavaScript client 1.3: a prompt, the answer to its question, and what came.
//   node drive_a2a_1.mjs URL WORKSPACE EXTENSION_URI BINDING VERSION
// BINDING: JSONRPC or HTTP+JSON; VERSION: 1.0 or 0.3, by its compatibility layer; token: ISTHMUS_A2A_TOKEN.
// Prints one JSON object of ProtoJSON values.
import {
  ListTasksRequest,
  ListTasksResponse,
  SendMessageRequest,
  StreamResponse,
  Task,
  TaskPushNotificationConfig,
} from "a2a-js-1";
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "a2a-js-1/client";

const [url, workspace, extension, binding, version] = process.argv.slice(2);

const fetchImpl = (input, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set("Authorization", `Bearer ${process.env.ISTHMUS_A2A_TOKEN}`);
  headers.set("A2A-Extensions", extension);
  return fetch(input, { ...init, headers });
};
const factory = new ClientFactory(
  ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [
      new JsonRpcTransportFactory({ fetchImpl, legacyCompat: { enabled: true } }),
      new RestTransportFactory({ fetchImpl, legacyCompat: { enabled: true } }),
    ],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    preferredTransports: [binding],
  }),
);
const card = await new DefaultAgentCardResolver({ fetchImpl }).resolve(url);
card.supportedInterfaces = card.supportedInterfaces.filter((each) => each.protocolVersion === version);
const client = await factory.createFromAgentCard(card);

async function collect(items) {
  const found = [];
  for await (const item of items) found.push(StreamResponse.toJSON(item));
  return found;
}

function request(message) {
  return SendMessageRequest.fromJSON({
    message: { messageId: crypto.randomUUID(), role: "ROLE_USER", ...message },
  });
}

const prompt = {
  parts: [{ text: "Write a greeting" }],
  metadata: { [extension]: { workspace_path: workspace } },
};
const asked = await collect(client.sendMessageStream(request(prompt)));
const { id, contextId } = asked[0].task;
const question = asked.at(-1).statusUpdate.status.message.parts[0].data;
// The subscription of 1.0 goes on until the task has ended, whoever answers.
let waiting;
for await (const item of client.resubscribeTask({ tenant: "", id })) {
  waiting = StreamResponse.toJSON(item);
  break;
}
const answered = await collect(
  client.sendMessageStream(
    request({
      taskId: id,
      contextId,
      parts: [
        {
          data: {
            tool_call_id: question.tool_call_id,
            selected_option_id: question.confirmation_request.options[0].id,
            file_details: { new_content: "changed by the user\n" },
          },
        },
      ],
    }),
  ),
);
const task = Task.toJSON(await client.getTask({ tenant: "", id }));
const unknown = await client.getTask({ tenant: "", id: "unknown" }).then(
  () => "",
  (error) => `${error.name}: ${error.message}`,
);
const listed =
  version === "0.3" // which has no method for it
    ? undefined
    : ListTasksResponse.toJSON(await client.listTasks(ListTasksRequest.fromJSON({ contextId, pageSize: 1 })));
const push = TaskPushNotificationConfig.toJSON(
  await client.createTaskPushNotificationConfig(
    TaskPushNotificationConfig.fromJSON({ taskId: id, id: "p", url: "https://1.1.1.1/hook" }),
  ),
);
const other = await collect(client.sendMessageStream(request(prompt)));
const canceled = Task.toJSON(await client.cancelTask({ tenant: "", id: other[0].task.id }));

process.stdout.write(JSON.stringify({ asked, waiting, answered, task, unknown, listed, push, canceled }) + "\n");
