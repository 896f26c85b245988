import type { FaultOf } from '../faults/fault.ts';

type Cut = Pick<FaultOf<'cut'>, 'at_byte' | 'at' | 'after_rows'>;

const QUOTE = 0x22;
const NEWLINE = 0x0a;
const INTO_A_ROW = 9;

/** Passes bytes on up to a cut, and stops there; `reached` is called if the body is that long. */
export async function* upTo(chunks: Chunks, cut: Cut, reached: () => void): AsyncGenerator<Buffer, void, undefined> {
  const find = cut.at_byte === undefined ? rowFinder(cut.at, cut.after_rows) : byteFinder(cut.at_byte);
  for await (const chunk of chunks) {
    const end = find(chunk);
    if (end === -1) {
      yield chunk;
      continue;
    }
    if (end > 0) yield chunk.subarray(0, end);
    reached();
    return;
  }
}

export type Chunks = AsyncIterable<Buffer> | Iterable<Buffer>;

/** Where in the next chunk the cut is; -1 when it comes later. */
type Finder = (chunk: Buffer) => number;

function byteFinder(at: number): Finder {
  let before = 0;
  return (chunk) => {
    const here = at - before;
    before += chunk.length;
    return here <= chunk.length ? here : -1;
  };
}

/** `between_rows`: right after the line end of data row n; `row_end`: right before it. `mid_row`: some bytes further. `mid_quote`: right after the first opening quote from there on. */
function rowFinder(at: Cut['at'], afterRows: number): Finder {
  let isQuoted = false;
  let lines = 0;
  let into = 0;
  return (chunk) => {
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i];
      if (byte === QUOTE) isQuoted = !isQuoted;
      else if (byte === NEWLINE && !isQuoted) lines++;
      if (lines <= afterRows) continue;
      if (at === 'row_end') return i;
      if (at === 'between_rows') return i + 1;
      if (at === 'mid_quote' ? byte === QUOTE && isQuoted : ++into > INTO_A_ROW) return i + 1;
    }
    return -1;
  };
}
