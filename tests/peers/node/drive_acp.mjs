// Drives an ACP agent with the official TypeScript SDK: what streams, a permission, another prompt, a load, a cancel.
//   node drive_acp.mjs WORKSPACE PROGRAM ARGUMENT...
// Prints one JSON object of what came.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { PROTOCOL_VERSION, client, ndJsonStream } from "@agentclientprotocol/sdk";

const [workspace, program, ...args] = process.argv.slice(2);

const updates = [];
const questions = [];
let answer = "allow_once";

const app = client({ name: "test" })
  .onNotification("session/update", ({ params }) => {
    updates.push(params.update);
    if (params.update.content?.text === "I begin.") begun();
  })
  .onRequest("session/request_permission", ({ params }) => {
    questions.push(params);
    const option = params.options.find(({ kind }) => kind === answer);
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  });
let begun = () => undefined;

async function connected(work) {
  const agent = spawn(program, args, { cwd: workspace, stdio: ["pipe", "pipe", "inherit"] });
  const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
  try {
    return await app.connectWith(stream, async (connection) => {
      const greeting = await connection.request("initialize", {
        protocolVersion: PROTOCOL_VERSION,
        clientCapabilities: { fs: { readTextFile: false, writeTextFile: false } },
        clientInfo: { name: "test", version: "1" },
      });
      return await work(connection, greeting);
    });
  } finally {
    agent.kill();
  }
}

async function attempt(action) {
  try {
    return await action;
  } catch (error) {
    return { code: error.code, message: error.message };
  }
}

const place = { cwd: workspace, mcpServers: [] };
const text = (value) => [{ type: "text", text: value }];

const first = await connected(async (connection, greeting) => {
  const prompt = (sessionId, words) => connection.request("session/prompt", { sessionId, prompt: text(words) });
  const session = await connection.request("session/new", place);
  const sessionId = session.sessionId;
  const hello = await prompt(sessionId, "say hello");
  const allowed = await prompt(sessionId, "write allowed.txt");
  answer = "reject_once";
  const refused = await prompt(sessionId, "write refused.txt");
  const works = new Promise((resolve) => {
    begun = resolve;
  });
  const running = prompt(sessionId, "take your time");
  await works;
  const second = await attempt(prompt(sessionId, "say hello"));
  await connection.notify("session/cancel", { sessionId });
  const cancelled = await running;
  const unknown = await attempt(prompt("nobody", "say hello"));
  const mode = await connection.request("session/set_config_option", { sessionId, configId: "mode", value: "plan" });
  const stops = [hello, allowed, refused, cancelled].map(({ stopReason }) => stopReason);
  const loggedOut = await attempt(connection.request("logout", {}));
  const withoutLogin = await attempt(connection.request("session/new", place));
  await connection.request("authenticate", { methodId: greeting.authMethods[0].id });
  await connection.request("session/new", place);
  return { loggedOut, withoutLogin, greeting, session, stops, second, unknown, mode, updates: updates.splice(0), questions: questions.splice(0) };
});

const second = await connected(async (connection) => {
  const listed = await connection.request("session/list", { cwd: workspace });
  await connection.request("session/load", { ...place, sessionId: first.session.sessionId });
  return { listed, updates: updates.splice(0), questions: questions.splice(0) };
});

console.log(JSON.stringify({ first, second }));
