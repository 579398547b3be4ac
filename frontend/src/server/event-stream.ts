// Server-sent events of a fetched body. The cost of a piece does not depend on what came before it.

/** Without a byte for this long a stream counts as dead; the server sends a comment every 15 s. */
const SILENCE_MS = 40_000;

export interface Frame {
  id?: number;
  data: string;
}

/** Yield the whole events of each piece, without comments; abort `connection` after a long silence. */
export async function* readFrames(
  body: ReadableStream<Uint8Array>,
  connection: AbortController,
): AsyncGenerator<Frame[]> {
  let silence = setTimeout(() => connection.abort(), SILENCE_MS);
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let pieces: string[] = [];
  let last = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(silence);
      silence = setTimeout(() => connection.abort(), SILENCE_MS);
      // The end of an event can be divided between two pieces. An event of many megabytes is joined once, at its end.
      if (!value.includes("\n\n") && !(last === "\n" && value.startsWith("\n"))) {
        pieces.push(value);
        last = value.at(-1) ?? last;
        yield [];
        continue;
      }
      const text = pieces.join("") + value;
      const end = text.lastIndexOf("\n\n");
      const rest = text.slice(end + 2);
      pieces = rest ? [rest] : [];
      last = rest.at(-1) ?? "";
      yield text
        .slice(0, end)
        .split("\n\n")
        .map(fields)
        .filter((frame) => frame.data !== "");
    }
  } finally {
    clearTimeout(silence);
    reader.cancel().catch(() => undefined);
  }
}

function fields(frame: string): Frame {
  let id: number | undefined;
  let data = "";
  for (const line of frame.split("\n")) {
    if (line.startsWith("id:")) id = Number(line.slice(3).trim());
    else if (line.startsWith("data:")) data += line.slice(5).trimStart();
  }
  return id === undefined ? { data } : { id, data };
}
