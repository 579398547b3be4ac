import fc from "fast-check";
import { beforeEach, describe, expect, it, vi } from "vitest";

type Later = typeof import("../../src/phone/later.ts");

/** Return the module as it is loaded with what a device keeps. */
async function later(kept: string | null, storage?: Partial<Storage>): Promise<Later> {
  const held = new Map(kept === null ? [] : [["isthmus.later", kept]]);
  vi.stubGlobal("localStorage", {
    getItem: (name: string) => held.get(name) ?? null,
    setItem: (name: string, value: string) => held.set(name, value),
    ...storage,
  });
  vi.resetModules();
  return import("../../src/phone/later.ts");
}

const named = (...keys: string[]) => keys.map((key) => ({ key }));

describe("what was put off", () => {
  beforeEach(() => vi.resetModules());

  it("stands at the end of the list, in the order of putting off, until that is taken back", async () => {
    const { inOrder, isLater, setLater } = await later(null);
    setLater("a", true);
    setLater("c", true);
    expect(inOrder(named("a", "b", "c", "d"))).toEqual(named("b", "d", "a", "c"));
    setLater("a", true);
    expect(inOrder(named("a", "b", "c", "d"))).toEqual(named("b", "d", "c", "a"));
    setLater("c", false);
    expect([isLater("a"), isLater("c")]).toEqual([true, false]);
    expect(inOrder(named("a", "b", "c", "d"))).toEqual(named("b", "c", "d", "a"));
  });

  it("is kept on the device", async () => {
    const { inOrder } = await later('["a"]');
    expect(inOrder(named("a", "b"))).toEqual(named("b", "a"));
  });

  it.each(["", "{", "{}", "7", "[1, null]"])("is nothing if the device keeps %j instead", async (kept) => {
    const { inOrder } = await later(kept);
    expect(inOrder(named("a", "b"))).toEqual(named("a", "b"));
  });

  it("holds for the page where a device keeps nothing", async () => {
    const refuse = () => {
      throw new Error("storage is off");
    };
    const { isLater, setLater } = await later(null, { getItem: refuse, setItem: refuse });
    setLater("a", true);
    expect(isLater("a")).toBe(true);
  });

  it("loses and doubles no item, and keeps the order of the others", async () => {
    const { inOrder, setLater } = await later(null);
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(30)), fc.array(fc.nat(30)), (listed, off) => {
        for (const key of off) setLater(String(key), true);
        const found = inOrder(named(...listed.map(String))).map(({ key }) => Number(key));
        expect([...found].sort()).toEqual([...listed].sort());
        const rest = listed.filter((key) => !off.includes(key));
        expect(found.slice(0, rest.length)).toEqual(rest);
        for (const key of off) setLater(String(key), false);
      }),
    );
  });
});
