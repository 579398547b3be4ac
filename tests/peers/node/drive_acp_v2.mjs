// Drives an ACP agent in the draft of version 2 with the official TypeScript SDK: prompts, permissions, a resume.
//   node drive_acp_v2.mjs WORKSPACE PROGRAM ARGUMENT...
// Prints one JSON object of what came.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { PROTOCOL_VERSION, client, ndJsonStream } from "@agentclientprotocol/sdk/experimental/v2";

const [workspace, program, ...args] = process.argv.slice(2);

const updates = [];
const questions = [];
let answer = "allow_once";
let notice = () => undefined;

const app = client({ name: "test" })
  .onNotification("session/update", ({ params }) => {
    updates.push(params.update);
    notice(params.update);
  })
  .onRequest("session/request_permission", ({ params }) => {
    questions.push(params);
    const option = params.options.find(({ kind }) => kind === answer);
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  });

const until = (matches) =>
  new Promise((resolve) => {
    notice = (update) => matches(update) && resolve();
  });

async function connected(work) {
  const agent = spawn(program, args, { cwd: workspace, stdio: ["pipe", "pipe", "inherit"] });
  const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
  try {
    return await app.connectWith(stream, async (connection) => {
      const greeting = await connection.request("initialize", {
        protocolVersion: PROTOCOL_VERSION,
        capabilities: {},
        info: { name: "test", version: "1" },
      });
      return await work(connection, greeting);
    });
  } finally {
    agent.kill();
  }
}

const isIdle = (update) => update.sessionUpdate === "state_update" && update.state === "idle";

const first = await connected(async (connection, greeting) => {
  const session = await connection.request("session/new", { cwd: workspace });
  const sessionId = session.sessionId;
  const accepted = [];
  const begin = async (words) => {
    const prompt = [{ type: "text", text: words }];
    accepted.push(await connection.request("session/prompt", { sessionId, prompt }));
  };
  const complete = async (words) => {
    const ends = until(isIdle);
    await begin(words);
    await ends;
  };
  await complete("say hello");
  await complete("write allowed.txt");
  answer = "reject_once";
  await complete("write refused.txt");
  const works = until((update) => update.content?.text === "I begin.");
  await begin("take your time");
  await works;
  const ends = until(isIdle);
  await connection.notify("session/cancel", { sessionId });
  await ends;
  const mode = await connection.request("session/set_config_option", {
    sessionId,
    configId: "mode",
    type: "id",
    value: "plan",
  });
  return { greeting, session, accepted, mode, updates: updates.splice(0), questions: questions.splice(0) };
});

const second = await connected(async (connection) => {
  const listed = await connection.request("session/list", { cwd: workspace });
  const sessionId = first.session.sessionId;
  const told = until(isIdle); // before the response, but its handler may run after it
  await connection.request("session/resume", { sessionId, cwd: workspace, replayFrom: { type: "start" } });
  await told;
  return { listed, updates: updates.splice(0) };
});

console.log(JSON.stringify({ first, second }));
