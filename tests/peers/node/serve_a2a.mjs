// A plain agent on the official JavaScript SDK: node serve_a2a.mjs VERSION BINDING [--no-streaming]
// VERSION is 0.3 (@a2a-js/sdk 0.3.14) or 1.0 (1.3.0), BINDING JSONRPC or HTTP+JSON; prints its URL.
// It asks "hello" who it is, answers "message" with a Message alone, refuses "fail", waits at "wait" until it is
// cancelled, counts to sixty at "count", and greets everybody else in an artifact.
import express from "express";

const [version, binding, ...flags] = process.argv.slice(2);
const isNew = version === "1.0";
const sdk = isNew ? "a2a-js-1" : "@a2a-js/sdk";
const { AgentCard, Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } = await import(sdk);
const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } = await import(`${sdk}/server`);
const { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } = await import(`${sdk}/server/express`);

const stateOf = (name) => (isNew ? `TASK_STATE_${name.toUpperCase().replace("-", "_")}` : name);
const partOf = (text) => (isNew ? { text } : { kind: "text", text });
const message = (task, text) => ({
  ...(isNew ? { role: "ROLE_AGENT" } : { kind: "message", role: "agent" }),
  messageId: crypto.randomUUID(),
  parts: [partOf(text)],
  taskId: task.id,
  contextId: task.contextId,
});

// Everything is written as JSON of the wire: 1.3 wants its own objects instead.
const publish = {
  task: (bus, value) => bus.publish(isNew ? AgentEvent.task(Task.fromJSON(value)) : { kind: "task", ...value }),
  message: (bus, value) => bus.publish(isNew ? AgentEvent.message(Message.fromJSON(value)) : value),
  status: (bus, value) =>
    bus.publish(isNew ? AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON(value)) : { kind: "status-update", ...value }),
  artifact: (bus, value) =>
    bus.publish(
      isNew ? AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON(value)) : { kind: "artifact-update", ...value },
    ),
};

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

class Greeter {
  waiting = new Map();

  execute = async (context, bus) => {
    const said = context.userMessage.parts.map((part) => part.text ?? part.content?.value ?? "").join("");
    const task = { id: context.taskId, contextId: context.contextId };
    const ids = { taskId: task.id, contextId: task.contextId };
    const tell = (name, text) =>
      publish.status(bus, {
        ...ids,
        status: { state: stateOf(name), timestamp: new Date().toISOString(), ...(text && { message: message(task, text) }) },
        ...(isNew ? {} : { final: name !== "working" }),
      });
    const show = (artifactId, text, append, lastChunk) =>
      publish.artifact(bus, { ...ids, artifact: { artifactId, parts: [partOf(text)] }, append, lastChunk });
    if (said === "message") {
      publish.message(bus, message(task, "Just words."));
      bus.finished();
      return;
    }
    if (!context.task) publish.task(bus, { ...task, status: { state: stateOf("submitted") }, history: [], artifacts: [] });
    else if (isNew) bus.publish(AgentEvent.task(context.task)); // 1.3 wants a task first, every time
    tell("working", "Let me see. ");
    if (said === "hello") tell("input-required", "Who are you?");
    else if (said === "fail") tell("failed", "I cannot.");
    else if (said === "wait") {
      await new Promise((resolve) => this.waiting.set(task.id, resolve));
      tell("canceled");
    } else if (said === "count") {
      for (let number = 1; number <= 60; number += 1) {
        await pause(10);
        show("numbers", `${number} `, number > 1, number === 60);
      }
      tell("completed", "There you are.");
    } else {
      show("greeting", `Hello ${said}`, false, false);
      show("greeting", "!", true, true);
      tell("completed", "There you are.");
    }
    bus.finished();
  };

  cancelTask = async (taskId, bus) => {
    const isWaiting = this.waiting.get(taskId);
    if (isWaiting) isWaiting();
    else {
      const ids = { taskId, contextId: "" };
      publish.status(bus, { ...ids, status: { state: stateOf("canceled") }, ...(isNew ? {} : { final: true }) });
      bus.finished();
    }
  };
}

const application = express();
const listener = application.listen(0, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${listener.address().port}/`;
  const about = {
    name: "Greeter",
    description: "Greets",
    version: "1",
    capabilities: { streaming: !flags.includes("--no-streaming") },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [{ id: "greet", name: "greet", description: "greet", tags: ["greet"] }],
  };
  const card = isNew
    ? AgentCard.fromJSON({ ...about, supportedInterfaces: [{ url, protocolBinding: binding, protocolVersion: "1.0" }] })
    : { ...about, protocolVersion: "0.3.0", url, preferredTransport: binding };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Greeter());
  application.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
  const serve = binding === "JSONRPC" ? jsonRpcHandler : restHandler;
  application.use("/", serve({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  console.log(url);
});
