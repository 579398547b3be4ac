// The three facts of a question, from the call itself: what is wanted, what it touches, what the answer covers.

import { diffOf } from "../diff/diffs.ts";
import { type FileDiff, LOOP_QUESTION, type ToolCall } from "../server/protocol.ts";
import { exact, exactLine, visibleLine } from "../text/safe.ts";
import { linesOf } from "../task/task-fold.ts";
import { t } from "../words.ts";

export interface Facts {
  verb: string;
  object: string;
  wants: string;
  touches: string;
  covers: string;
  /** What the answer costs the user. */
  costs?: string;
}

export { diffOf };

export function shownPath(path: string, workspace: string): string {
  const below = workspace.replace(/\/$/, "") + "/";
  return exact(path.startsWith(below) ? path.slice(below.length) : path);
}

/** Return the last part of a path. */
export function fileName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** Return whether a call asks the user to fill in a document: keys never send it as it came, and no answer to many does. */
export function isForm(call: ToolCall): boolean {
  const isAsked = call.tool_name === "ask_user" || call.tool_name === "elicitation";
  return isAsked && call.confirmation_request?.file_edit_details !== undefined;
}

/** Return why a document with comments is not JSON; empty if it is. */
export function jsonProblem(text: string): string {
  // Strings stay; comments and commas before a closing bracket are allowed.
  const plain = text
    .replace(/("(?:[^"\\\n]|\\.)*")|\/\/[^\n]*|\/\*[^]*?\*\//g, "$1")
    .replace(/("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])/g, "$1");
  try {
    JSON.parse(plain);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

/** Return whether a call removes a file; one that only empties a file does not. */
function isRemoval(call: ToolCall, { old_content, new_content, file_path }: FileDiff): boolean {
  if (!old_content || new_content !== "") return false;
  if (/(^|[^a-z])(delete|remove|unlink)(?![a-z])/i.test(call.tool_name)) return true;
  if (call.input_parameters?.removes_moved === true) return true; // the second call of a move
  const patch = [call.input_parameters?.input, call.input_parameters?.patch].find((text) => typeof text === "string");
  const removed = typeof patch === "string" ? [...patch.matchAll(/^\*\*\* Delete File: (.+)$/gm)] : [];
  return removed.some(([, path]) => path !== undefined && `/${file_path}`.endsWith(`/${path.trim()}`));
}

const FOUND = new WeakMap<ToolCall, { workspace: string; facts: Facts }>();

/** Return the facts of a call; they are found once. */
export function factsOf(call: ToolCall, workspace: string): Facts {
  const known = FOUND.get(call);
  if (known?.workspace === workspace) return known.facts;
  const facts = found(call, workspace);
  FOUND.set(call, { workspace, facts });
  return facts;
}

function found(call: ToolCall, workspace: string): Facts {
  const request = call.confirmation_request;
  const reason = [request?.wants, call.input_parameters?.instruction, call.input_parameters?.description].find(
    (value) => typeof value === "string" && value.trim(),
  );
  const wants = typeof reason === "string" ? `\u201c${visibleLine(reason, 400)}\u201d` : "";
  const asked = askedFacts(call, wants);
  if (asked) return asked;
  const diff = diffOf(call);
  if (diff) {
    const path = shownPath(diff.file_path || diff.file_name, workspace);
    const isNew = diff.old_content === undefined;
    if (isRemoval(call, diff)) {
      const gone = linesOf(diff.old_content ?? "").length;
      return {
        verb: t("deleteFile"),
        object: path,
        wants,
        touches: gone === 1 ? t("goneLine", path) : t("goneLines", path, gone),
        covers: t("thisFileOnly"),
      };
    }
    const lines = linesOf(diff.new_content).length;
    const only = call.tool_name === "replace" || call.tool_name === "write_file";
    return {
      verb: t(isNew ? "create" : "change"),
      object: path,
      wants,
      touches: isNew ? t(lines === 1 ? "newFileOfOne" : "newFile", path, lines) : only ? t("nothingElse", path) : path,
      covers: t(isNew ? "thisFileOnly" : "thisChangeOnly"),
    };
  }
  const command =
    request?.execute_details?.command ??
    (call.tool_name === "run_shell_command" ? call.input_parameters?.command : undefined);
  if (typeof command === "string") {
    const place = request?.execute_details?.working_directory;
    return {
      verb: t("run"),
      object: exactLine(command, 120),
      wants,
      touches: place ? t("runsIn", exact(place)) : "",
      covers: request ? t("thisCommandOnce") : "",
    };
  }
  if (request?.mcp_details) {
    return {
      verb: t("call"),
      object: exactLine(request.mcp_details.tool_name),
      wants,
      touches: t("goesTo", exactLine(request.mcp_details.server_name)),
      covers: t("thisCallOnce"),
    };
  }
  const description = exactLine(call.description ?? "", 160);
  return { verb: "", object: description || exactLine(call.tool_name), wants, touches: "", covers: "" };
}

/** Return the facts of a call that is a question itself; its document is only a means to answer it. */
function askedFacts(call: ToolCall, wants: string): Facts | undefined {
  const about = call.input_parameters ?? {};
  if (call.tool_name === "sampling" && typeof about.server === "string") {
    const tokens = typeof about.max_tokens === "number" ? about.max_tokens : "?";
    const object = t("asksModel", exactLine(about.server, 80));
    return { verb: "", object, wants, touches: "", covers: t("once"), costs: t("upToTokens", tokens) };
  }
  if (call.tool_name === LOOP_QUESTION) return { verb: "", object: t("repeatsItself"), wants, touches: "", covers: "" };
  if (call.tool_name !== "ask_user" && call.tool_name !== "elicitation") return undefined;
  const message = typeof about.message === "string" ? about.message : (call.description ?? "");
  const object = exactLine(message.trimStart().split("\n", 1)[0] ?? "", 160) || exactLine(call.tool_name);
  return { verb: "", object, wants, touches: "", covers: call.confirmation_request ? t("thisQuestion") : "" };
}
