import { isUtf8 } from 'node:buffer';
import { createReadStream, statSync } from 'node:fs';
import { basename } from 'node:path';
import { readLines } from '../../base/byte-streams.ts';
import type { HashKey } from '../../base/hash-key.ts';
import type { LedgerKeys } from './ledger-file.ts';
import type { LedgerLine, SignedLine } from './lines.ts';

/** Where a chain ends: behind so many lines, which are `size` bytes. */
interface ChainEnd {
  readonly lineCount: number;
  readonly size: number;
  /** The code of the last line. The first line has that of an empty chain as its `prev`. */
  readonly head: string;
}
export const EMPTY_CHAIN: ChainEnd = { lineCount: 0, size: 0, head: '0'.repeat(64) };

/** The text of lines that follow `end`, and the end behind them. */
export function signLines(lines: readonly LedgerLine[], { lineCount, size, head }: ChainEnd, key: HashKey) {
  let text = '';
  let mac = head;
  for (const line of lines) {
    const covered = JSON.stringify({ ...line, prev: mac }).slice(0, -1);
    mac = key.hashOf(covered);
    text += `${covered},"mac":"${mac}"}\n`;
  }
  const end: ChainEnd = { lineCount: lineCount + lines.length, size: size + Buffer.byteLength(text), head: mac };
  return { text, end };
}

const SIGNED = /^(\{.*),"mac":"([0-9a-f]{64})"\}$/s;

/** The line, checked by its own code alone; or why it is not what was written. */
function verifiedLine(bytes: Buffer, key: HashKey): SignedLine | string {
  if (!isUtf8(bytes)) return 'is not valid UTF-8';
  const text = bytes.toString();
  const [, covered, mac] = SIGNED.exec(text) ?? [];
  if (covered === undefined || mac === undefined) return 'is not a line of a ledger';
  if (key.hashOf(covered) !== mac)
    return covered.includes(`"key_check":"${key.keyCheck}"`) ? 'was changed' : 'was written under another ledger_key';
  const line: SignedLine = JSON.parse(text);
  return line.v === 1 ? line : 'was written by a later version';
}

type OnLine = (line: SignedLine) => void;

/**
 * Reads on behind `previousEnd`, and gives each line to `onLine` that is whole and follows the line before it. Ends at
 * the first problem, a sentence. `tornBytes`: those behind the last line end, as a crash during a write leaves them.
 * They are no line, whatever they hold. A file that is not there is an empty ledger. Memory: one line.
 */
export async function readChain(path: string, key: HashKey, previousEnd: ChainEnd, onLine: OnLine) {
  let end = previousEnd;
  const intact = (tornBytes = 0) => ({ end, tornBytes, problem: undefined });
  const broken = (clause: string) => {
    const problem = `${basename(path)}, line ${end.lineCount + 1} ${clause}.`;
    return { end, tornBytes: 0, problem };
  };
  const fileSize = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (fileSize < end.size) return broken('and lines before it are missing');
  if (fileSize === end.size) return intact();
  for await (const lines of readLines(createReadStream(path, { start: end.size, end: fileSize - 1 }))) {
    for (const bytes of lines) {
      const size = end.size + bytes.length + 1;
      if (size > fileSize) return intact(bytes.length);
      const line = verifiedLine(bytes, key);
      if (typeof line === 'string') return broken(line);
      if (line.prev !== end.head) return broken('does not follow the line before it');
      end = { lineCount: end.lineCount + 1, size, head: line.mac };
      onLine(line);
    }
  }
  return intact();
}

/**
 * Checks a whole ledger, and gives each good line to `onLine`. `expectedHead`: the code of a line that must be there,
 * as a run printed it. So a tail that was cut off is found, too. Every ledger begins with the head of an empty chain.
 * The result is schemas/ledger-verdict.json.
 */
export async function verifyLedger(
  { path, keys }: { readonly path: string; readonly keys: LedgerKeys },
  expectedHead = EMPTY_CHAIN.head,
  onLine: OnLine = () => {},
) {
  const expectedMac = expectedHead.trim().toLowerCase();
  let isHeadSeen = expectedMac === EMPTY_CHAIN.head;
  const chain = await readChain(path, keys.lineKey, EMPTY_CHAIN, (line) => {
    isHeadSeen ||= line.mac === expectedMac;
    onLine(line);
  });
  const cutOff = 'The head given is the code of no line: lines were cut off at the end, or it is of another ledger.';
  const problem = chain.problem ?? (isHeadSeen ? undefined : cutOff);
  return {
    v: 1,
    kind: 'ledger_verdict',
    ok: problem === undefined,
    file: path,
    lines: chain.end.lineCount,
    torn_bytes: chain.tornBytes,
    problems: problem === undefined ? [] : [problem],
    head: chain.end.head,
  } as const;
}
