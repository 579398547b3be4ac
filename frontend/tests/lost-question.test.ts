import { describe, expect, it } from "vitest";
import { LostQuestion } from "../src/lost-question.ts";
import { call } from "./support/events.ts";

const [one, two] = [call("one", "PENDING"), call("two", "PENDING")];
const typed = () => true;
const untouched = () => false;

describe("a question that was answered elsewhere", () => {
  it("stays if something was typed for it, also while others come", () => {
    const lost = new LostQuestion();
    lost.take([[one]], typed);
    lost.take([], typed);
    expect(lost.calls).toEqual([one]);
    lost.take([[two]], typed);
    lost.take([], typed);
    expect(lost.calls).toEqual([one]);
    lost.close();
    expect(lost.calls).toBeUndefined();
  });

  it("goes if nothing was typed, or if it was not in view", () => {
    const lost = new LostQuestion();
    lost.take([[one], [two]], untouched);
    lost.take([[one]], typed);
    expect(lost.calls).toBeUndefined();
    lost.take([], untouched);
    expect(lost.calls).toBeUndefined();
  });

  it("is none if it was answered here, until the answer came too late", () => {
    const lost = new LostQuestion();
    lost.take([[one]], typed);
    lost.answering();
    lost.take([], typed);
    expect(lost.calls).toBeUndefined();
    lost.failed([]);
    expect(lost.calls).toEqual([one]);
  });

  it("is none if an answer of ours failed and the question is still open", () => {
    const lost = new LostQuestion();
    lost.take([[one]], typed);
    lost.answering();
    lost.failed([[one]]);
    expect(lost.calls).toBeUndefined();
  });

  it("of several calls stays in view with what was answered of it, and is lost with the last of them", () => {
    const lost = new LostQuestion();
    lost.take([[one, two]], typed);
    lost.take([[two]], typed);
    expect([lost.calls, lost.shown]).toEqual([undefined, [one, two]]);
    lost.take([], typed);
    expect(lost.calls).toEqual([one, two]);
  });
});
