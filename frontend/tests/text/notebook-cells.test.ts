import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { notebookChanges } from "../../src/text/notebook-cells.ts";

interface CellJson {
  cell_type: string;
  source: string | string[];
  id?: string;
  outputs?: unknown[];
  metadata?: unknown;
}

const code = (source: string, more: Partial<CellJson> = {}): CellJson => ({ cell_type: "code", source, ...more });
const notebook = (cells: CellJson[], rest: Record<string, unknown> = {}): string => JSON.stringify({ cells, ...rest });

/** Return what changed, as "changed 1", and how many cells did not. */
function said(before: CellJson[], after: CellJson[]): { cells: string[]; same: number } {
  const changes = notebookChanges(notebook(before), notebook(after));
  if (!changes) throw new Error("expected notebooks");
  return { cells: changes.cells.map(({ what, number }) => `${what} ${number}`), same: changes.same };
}

const anyCell = fc.record({
  cell_type: fc.constantFrom("code", "markdown"),
  source: fc.constantFrom("a", "b", "c"),
  outputs: fc.constantFrom<unknown[][]>([], [{ text: "1" }]),
});
const anyCells = fc.array(anyCell, { maxLength: 8 });
const withIds = (cells: CellJson[]): CellJson[] => cells.map((cell, at) => ({ ...cell, id: `cell${at}` }));

describe("the changes of a notebook", () => {
  it("are those of a cell's text, outputs and metadata", () => {
    const before = [code("a", { id: "1" }), code("b", { id: "2" }), code("c", { id: "3" }), code("d", { id: "4" })];
    const after = [
      code("A", { id: "1" }),
      code("b", { id: "2", outputs: [1] }),
      code("c", { id: "3", metadata: { tags: [] } }),
      code("d", { id: "4" }),
    ];
    expect(said(before, after)).toEqual({ cells: ["changed 1", "changed 2", "changed 3"], same: 1 });
    const changes = notebookChanges(notebook(before), notebook(after));
    expect(changes?.cells.map((cell) => cell.hasOtherOutputs)).toEqual([false, true, false]);
  });

  it("are additions, removals and moves by the ids of cells", () => {
    const [one, two, three] = ["1", "2", "3"].map((id) => code(id, { id })) as [CellJson, CellJson, CellJson];
    expect(said([one, two], [one, three, two])).toEqual({ cells: ["added 2"], same: 2 });
    expect(said([one, two, three], [one, three])).toEqual({ cells: ["removed 2"], same: 2 });
    expect(said([one, two, three], [three, one, two])).toEqual({ cells: ["moved 1"], same: 2 });
  });

  it("pair cells without an id by their neighbours", () => {
    expect(said([code("a"), code("b"), code("c")], [code("a"), code("B"), code("c")])).toEqual({
      cells: ["changed 2"],
      same: 2,
    });
  });

  it("account for each cell of both notebooks once", () => {
    const pairs = fc.oneof(
      fc.tuple(anyCells, anyCells),
      anyCells.chain((cells) =>
        fc.shuffledSubarray(withIds(cells)).map((other): [CellJson[], CellJson[]] => [withIds(cells), other]),
      ),
    );
    fc.assert(
      fc.property(pairs, ([before, after]) => {
        const changes = notebookChanges(notebook(before), notebook(after));
        expect(changes).toBeDefined();
        if (!changes) return;
        const [old, now] = [changes.cells.filter((cell) => cell.old), changes.cells.filter((cell) => cell.new)];
        expect(old.length + changes.same).toBe(before.length);
        expect(now.length + changes.same).toBe(after.length);
        expect(new Set(now.map((cell) => cell.number)).size).toBe(now.length);
      }),
    );
  });

  it("are none of a notebook and itself", () => {
    fc.assert(
      fc.property(anyCells, (cells) => {
        const text = notebook(cells);
        expect(notebookChanges(text, text)).toMatchObject({ cells: [], same: cells.length, rest: undefined });
      }),
    );
  });

  it("take a source in lines and one text for the same", () => {
    expect(said([code("a\nb")], [{ cell_type: "code", source: ["a\n", "b"] }])).toEqual({ cells: [], same: 1 });
  });

  it("name what is beside the cells, and the ending of its language", () => {
    const language_info = { file_extension: ".jl" };
    const changes = notebookChanges(notebook([]), notebook([], { metadata: { language_info } }));
    expect(changes?.rest?.old).toBe("{}");
    expect(changes?.ending).toBe(".jl");
    const hostile = notebook([], { metadata: { language_info: { file_extension: "/../x" } } });
    expect(notebookChanges(undefined, hostile)?.ending).toBe(".py");
  });

  it.each(["", "{}", "[]", "null", '{"cells":{}}', '{"cells":[1]}', '{"cells":[{"cell_type":"code","source":1}]}'])(
    "are not those of %j",
    (text) => {
      expect(notebookChanges(undefined, text)).toBeUndefined();
      expect(notebookChanges(text, notebook([]))).toBeUndefined();
    },
  );

  it("are left to the text if there are too many", () => {
    const cells = Array.from({ length: 201 }, (_, at) => code(String(at)));
    expect(notebookChanges(undefined, notebook(cells))).toBeUndefined();
    expect(notebookChanges(undefined, notebook(cells.slice(1)))?.cells).toHaveLength(200);
  });
});
