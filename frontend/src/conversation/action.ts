// An action of a page that is under way, and why the last one failed.

import { problemOf } from "../problems/problem.ts";

export class Action {
  isUnderWay = false;
  problem = "";

  constructor(private readonly changed: () => void) {}

  /** Do something; return whether it succeeded, and otherwise say why it did not. */
  async run(act: () => Promise<void>): Promise<boolean> {
    this.isUnderWay = true;
    this.say("");
    try {
      await act();
      return true;
    } catch (error) {
      this.fail(error);
      return false;
    } finally {
      this.isUnderWay = false;
      this.changed();
    }
  }

  /** Say why something failed that did not keep the page busy. */
  fail(error: unknown): void {
    this.say(problemOf(error));
  }

  say(problem: string): void {
    this.problem = problem;
    this.changed();
  }
}
