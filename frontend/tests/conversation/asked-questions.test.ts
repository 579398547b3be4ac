import { describe, expect, it } from "vitest";
import {
  AskedQuestions,
  type OpenQuestion,
  type Place,
  beyondView,
  keyedOf,
  nextAfter,
} from "../../src/conversation/asked-questions.ts";
import { call } from "../support/events.ts";

const asks = (...ids: string[]): OpenQuestion => ({ taskId: "turn", calls: ids.map((id) => call(id, "PENDING")) });
const [one, two, three] = [asks("one"), asks("two"), asks("three")];
const held = () => true;
const untouched = () => false;

function taken(...open: OpenQuestion[]): AskedQuestions {
  const questions = new AskedQuestions();
  questions.take(open, untouched);
  return questions;
}

const namesOf = (questions: AskedQuestions) =>
  questions.shown.map(({ key, hasEnded }) => `${key}${hasEnded ? " ended" : ""}`);

describe("a question that was answered elsewhere", () => {
  it("stays in its place if the user was at it, also while others come", () => {
    const questions = taken(one, two);
    questions.take([two], (key) => key === "turn/one");
    questions.take([two, three], untouched);
    expect(namesOf(questions)).toEqual(["turn/one ended", "turn/two", "turn/three"]);
    expect(questions.open.map(({ key }) => key)).toEqual(["turn/two", "turn/three"]);
    expect(questions.close()).toBe(true);
    expect(namesOf(questions)).toEqual(["turn/two", "turn/three"]);
    expect(questions.close()).toBe(false);
  });

  it("goes if nobody was at it", () => {
    const questions = taken(one, two);
    questions.take([two], untouched);
    expect(namesOf(questions)).toEqual(["turn/two"]);
  });

  it("is none if it was answered here, until the answer came too late", () => {
    const questions = taken(one);
    const [shown] = questions.shown;
    questions.answering("turn/one");
    questions.take([], held);
    expect(namesOf(questions)).toEqual([]);
    if (shown) questions.failed(shown);
    expect(namesOf(questions)).toEqual(["turn/one ended"]);
  });

  it("is none if an answer of ours failed and the question is still open", () => {
    const questions = taken(one);
    const [shown] = questions.shown;
    questions.answering("turn/one");
    if (shown) questions.failed(shown);
    expect(namesOf(questions)).toEqual(["turn/one"]);
  });

  it("of several calls stays with what was answered of it, and has ended with the last of them", () => {
    const questions = taken(asks("one", "two"));
    questions.take([two], held);
    expect(questions.shown[0]?.calls.map((each) => each.tool_call_id)).toEqual(["one", "two"]);
    expect(namesOf(questions)).toEqual(["turn/one"]);
    questions.take([], held);
    expect(namesOf(questions)).toEqual(["turn/one ended"]);
  });

  it("is another one than a question of the same id in another turn", () => {
    const questions = taken(one);
    questions.take([{ ...one, taskId: "later" }], untouched);
    expect(namesOf(questions)).toEqual(["later/one"]);
  });
});

const places = (...all: Place[]) =>
  new Map(["turn/one", "turn/two", "turn/three"].map((key, at): [string, Place] => [key, all[at] ?? "below"]));

describe("several questions of one step", () => {
  const { open } = taken(one, two, three);

  it("have one that takes keys: with the focus, otherwise the first in view", () => {
    expect(keyedOf(open, "", places("above", "in", "in"))).toBe("turn/two");
    expect(keyedOf(open, "turn/three", places("above", "in", "in"))).toBe("turn/three");
    expect(keyedOf(open, "turn/gone", places("in"))).toBe("turn/one");
    expect(keyedOf(open, "", places("above", "below", "below"))).toBeUndefined();
  });

  it("are led to where they are out of view: below first, otherwise the nearest above", () => {
    expect(beyondView(open, places("above", "in", "below"))).toMatchObject({ count: 2, place: "below" });
    expect(beyondView(open, places("above", "in", "below"))?.next.key).toBe("turn/three");
    expect(beyondView(open, places("above", "above", "in"))?.next.key).toBe("turn/two");
    expect(beyondView(open, places("in", "in", "in"))).toBeUndefined();
  });

  it("lead on from one that was answered to the next one, and from the last to the first", () => {
    expect(nextAfter(taken(one, three).open, open, "turn/two")?.key).toBe("turn/three");
    expect(nextAfter(taken(one, two).open, open, "turn/three")?.key).toBe("turn/one");
    expect(nextAfter([], open, "turn/three")).toBeUndefined();
  });
});
