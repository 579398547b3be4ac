import { describe, expect, it } from "vitest";
import { AnsweredElsewhere, toastOf, toastOfReview } from "../../src/frame/answered-elsewhere.ts";
import type { Toast } from "../../src/frame/toasts.ts";
import type { TaskRow, ToolCall } from "../../src/server/protocol.ts";
import type { Outcome, Waiting } from "../../src/server/reviews.ts";
import type { Question } from "../../src/server/store.ts";

const call: ToolCall = {
  tool_call_id: "c",
  status: "PENDING",
  tool_name: "run_shell_command",
  confirmation_request: { options: [], execute_details: { command: "npm test\u202e" } },
};
const question: Question = { task: { id: "t", workspace: "/w", contextId: "x" } as TaskRow, call, calls: [call] };
const by = (name: string, optionId = "once") => ({
  answer: { kind: "answered" as const, callId: "c", optionId, by: name, at: 0 },
});
const review = { key: "a.1", kind: "review" } as Waiting;
const outcome = (decision: Outcome["decision"], name: string): Outcome => ({
  id: "a.1",
  about: "/w/a.py",
  agent: "Gemini CLI",
  decision,
  by: name,
  at: 0,
  problem: "",
});

describe("a message about an answer", () => {
  it("says to what, how and where, and leads to the address of the question", () => {
    expect(toastOf(question, by("iPhone"), "own")).toMatchObject({
      text: "Run npm test\\u{202e}: Allowed on your phone",
      path: expect.stringMatching(/question\/t%2Fc$/) as string,
    });
    expect(toastOf(question, by("Emacs", "reject_once"), "own")?.text).toMatch(/: Rejected in Emacs$/);
  });

  it("is left out for own answers, and where nobody answered", () => {
    expect(toastOf(question, by("own"), "own")).toBeUndefined();
    expect(toastOf(question, {}, "own")).toBeUndefined();
    expect(toastOfReview(review, outcome("accepted", "own"), "own")).toBeUndefined();
    expect(toastOfReview(review, outcome("closed", "Gemini CLI"), "own")).toBeUndefined();
    expect(toastOfReview(review, undefined, "own")).toBeUndefined();
    expect(toastOfReview(review, outcome("rejected", "vim"), "own")?.text).toBe("/w/a.py: Rejected by vim");
  });

  it("is left out where the page shows it, and for what waited before the page was there", () => {
    const told: Toast[] = [];
    const elsewhere = new AnsweredElsewhere((toast) => told.push(toast));
    const take = (reviews: Waiting[], isInView: boolean) =>
      elsewhere.takeReviews(
        reviews,
        () => outcome("yes", "vim"),
        () => isInView,
      );
    take([], false);
    take([review], false);
    take([], true);
    expect(told).toEqual([]);
    take([review], false);
    take([], false);
    expect(told.map(({ key }) => key)).toEqual(["a.1"]);
  });
});
