// What the row of a call says: what is done to what, and how it ended. Pure.

import { numeral } from "../language.ts";
import type { CallStatus, TaskState, ToolCall } from "../server/protocol.ts";
import { factsOf, shownPath } from "../questions/question.ts";
import { exactLine, visibleLine } from "../text/safe.ts";
import { INVOKE_AGENT, ownWords, subagentOf } from "./subagents.ts";
import { COMMA, t } from "../words.ts";

export interface RowFacts {
  verb: string;
  /** What it is done to, as it is named in the workspace; empty if `rest` says all. */
  object: string;
  rest: string;
}

/** How a call ended, in figures that stay when its output is not kept. */
export type CallResult =
  | { is: "exit"; code: number }
  | { is: "places"; places: number; files: number; isMore: boolean }
  | { is: "files"; count: number; isMore: boolean }
  | { is: "lines"; from: number; count: number }
  | { is: "entries"; count: number }
  | { is: "steps"; done: number; all: number };

const LONGEST_OBJECT = 160;

type Says = (value: (name: string) => string, call: ToolCall, workspace: string) => [string, string, string?];

const path: (verb: () => string) => Says = (verb) => (value, _, workspace) => [
  verb(),
  shownPath(value("file_path") || value("path") || value("dir_path") || value("absolute_path"), workspace),
];

/** The rows of tools whose parameters say more than their description. */
const SAYS: Readonly<Record<string, Says>> = {
  grep_search: (value, _, workspace) => {
    const folder = value("dir_path") && shownPath(value("dir_path"), workspace);
    return [t("rowSearch"), value("pattern"), folder && folder !== "." ? t("rowIn", folder) : ""];
  },
  glob: (value) => [t("rowFind"), value("pattern")],
  read_file: path(() => t("rowRead")),
  list_directory: path(() => t("rowList")),
  write_file: path(() => t("change")),
  replace: path(() => t("change")),
  read_many_files: (_, { input_parameters: given }) => {
    const names = Array.isArray(given?.include) ? given.include : [];
    return [t("rowRead"), names.filter((name): name is string => typeof name === "string").join(COMMA)];
  },
  web_fetch: (value) => [t("rowFetch"), value("url") || value("prompt")],
  google_web_search: (value) => [t("rowSearchWeb"), value("query")],
  write_todos: () => ["", "", t("plan")],
  [INVOKE_AGENT]: (value) => [t("rowSubagent"), value("agent_name"), visibleLine(value("prompt"), LONGEST_OBJECT)],
};

/** Return what a call does, as its row says it. */
export function rowFactsOf(call: ToolCall, workspace: string): RowFacts {
  const given = call.input_parameters ?? {};
  const value = (name: string): string => {
    const found = given[name];
    return typeof found === "string" ? found : "";
  };
  const facts = factsOf(call, workspace);
  // A change and a command are said as their question says them.
  const said = facts.verb ? undefined : SAYS[call.tool_name]?.(value, call, workspace);
  if (said?.[1] || said?.[2]) return { verb: said[0], object: exactLine(said[1], LONGEST_OBJECT), rest: said[2] ?? "" };
  if (facts.verb) return { verb: facts.verb, object: facts.object, rest: "" };
  const rest = subagentOf(call) ? exactLine(ownWords(call), LONGEST_OBJECT) : facts.object;
  return { verb: "", object: "", rest };
}

/** Return the figures of a call that is over; of others, and where nothing is known, nothing. */
export function resultOf(call: ToolCall): CallResult | undefined {
  if (call.tool_name === "write_todos") return stepsOf(call);
  const code = call.output?.exit_code;
  if (typeof code === "number" && code !== 0) return { is: "exit", code };
  const text = call.output?.text;
  return call.status === "SUCCEEDED" && text ? READ[call.tool_name]?.(text) : undefined;
}

/** What the outputs of tools say, by the first lines that the tools themselves write. */
const READ: Readonly<Record<string, (text: string) => CallResult | undefined>> = {
  grep_search: (text) => {
    const found = /^Found (\d+) (match(?:es)?|files with matches) for pattern /m.exec(text);
    if (!found) return /^No matches found for /m.test(text) ? places(0, 0, false) : undefined;
    const isMore = /^Found .*\(only the first \d+ are shown; there are more\):$/m.test(text);
    const count = Number(found[1]);
    if (!found[2]?.startsWith("match")) return { is: "files", count, isMore };
    return places(count, text.match(/^File: /gm)?.length ?? 0, isMore);
  },
  glob: (text) => {
    const found = /^Found (\d+) file\(s\) matching /m.exec(text);
    if (found) return { is: "files", count: Number(found[1]), isMore: false };
    return text.startsWith("No files found matching ") ? { is: "files", count: 0, isMore: false } : undefined;
  },
  read_file: (text) => {
    const part = /^\[Lines (\d+)-(\d+) of \d+ of /m.exec(text.slice(0, 2_000));
    if (part) return { is: "lines", from: Number(part[1]), count: Number(part[2]) - Number(part[1]) + 1 };
    return IMAGE.test(text) ? undefined : { is: "lines", from: 1, count: linesIn(text) };
  },
  read_many_files: (text) => {
    const found = /^Read (\d+) of \d+ files\.$/m.exec(text);
    return found ? { is: "files", count: Number(found[1]), isMore: false } : undefined;
  },
  list_directory: (text) => {
    if (text === "The folder is empty.") return { is: "entries", count: 0 };
    const lines = text.split("\n");
    const more = /^\[(\d+) more entries are not shown/m.exec(text);
    const own = lines.filter((line) => !/^(\(\d+ ignored\)|\[\d+ more entries )/.test(line));
    return { is: "entries", count: own.length + Number(more?.[1] ?? 0) };
  },
};
const IMAGE = /^[^\n]*: (image|audio|application)\/[\w.+-]+, [^\n]*$/;

function places(count: number, files: number, isMore: boolean): CallResult {
  return { is: "places", places: count, files, isMore };
}

function stepsOf(call: ToolCall): CallResult | undefined {
  const todos = call.input_parameters?.todos;
  if (!Array.isArray(todos)) return undefined;
  const done = todos.filter((todo: { status?: unknown } | null) => todo?.status === "completed").length;
  return { is: "steps", done, all: todos.length };
}

/** Return how many lines a text has; an end of the last line begins no further one. */
export function linesIn(text: string): number {
  let count = text === "" || text.endsWith("\n") ? 0 : 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

/** Return the last lines of an output, and how many are above them. */
export function lastLines(text: string, count: number): { text: string; above: number } {
  const whole = text.replace(/\n+$/, "");
  let from = whole.length;
  for (let left = count; left > 0; left -= 1) {
    const at = from > 0 ? whole.lastIndexOf("\n", from - 1) : -1;
    if (at < 0) return { text: whole, above: 0 };
    from = at;
  }
  return { text: whole.slice(from + 1), above: linesIn(whole.slice(0, from + 1)) };
}

/** Return the output of a command without the line of its exit code, which the tool has added. */
export function withoutExitCode(text: string): string {
  return text.replace(/(^|\n)(Exit Code: \d+|Signal: \d+ \(\w+\))(?=\n|$)(?![^]*\n(Exit Code|Signal): )/, "");
}

/** Return the state of a row: a command that has ended with an exit code has failed, although its tool has not. */
export function markOf(status: CallStatus, result: CallResult | undefined, isAsking: boolean): TaskState {
  if (status === "FAILED" || (status === "SUCCEEDED" && result?.is === "exit")) return "failed";
  if (status === "SUCCEEDED") return "completed";
  if (status === "CANCELLED") return "canceled";
  return isAsking ? "input-required" : "working";
}

/** Return the words of a result. */
export function resultWords(result: CallResult): string {
  const count = (value: number, isMore = false): string => numeral(value) + (isMore ? "+" : "");
  switch (result.is) {
    case "exit":
      return result.code < 0 ? t("rowSignal", -result.code) : t("rowExit", result.code);
    case "places":
      if (!result.places) return t("rowNothing");
      return t(
        result.places === 1 ? "rowPlace" : result.files === 1 ? "rowPlacesInFile" : "rowPlaces",
        count(result.places, result.isMore),
        count(result.files, result.isMore),
      );
    case "files":
      return result.count
        ? t(result.count === 1 ? "oneFile" : "countFiles", count(result.count, result.isMore))
        : t("rowNothing");
    case "lines":
      if (result.from > 1) return t("rowLinesFrom", count(result.from), count(result.from + result.count - 1));
      return t(result.count === 1 ? "rowLine" : "rowLines", count(result.count));
    case "entries":
      return t(result.count === 1 ? "rowEntry" : "rowEntries", count(result.count));
    case "steps":
      return t("rowSteps", count(result.done), count(result.all));
  }
}

/** Return a time in milliseconds as a row says it once it is over; empty below one second. */
export function durationWords(time: number): string {
  const seconds = Math.round(time / 1000);
  if (time < 1000) return "";
  return seconds < 60 ? t("seconds", seconds) : clockWords(time);
}

/** Return a time that goes on, as minutes and seconds. */
export function clockWords(time: number): string {
  const seconds = Math.max(0, Math.floor(time / 1000));
  const two = (value: number): string => String(value).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes}:${two(seconds % 60)}`
    : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}
