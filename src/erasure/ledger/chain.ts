import { isUtf8 } from 'node:buffer';
import { hkdfSync } from 'node:crypto';
import { createReadStream, existsSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { configError } from '../../base/errors.ts';
import { HashKey } from '../../base/hash-key.ts';
import { linesOf } from '../../base/lines.ts';
import { Secret } from '../../base/secrets.ts';
import { type KeyedFile, keyForReading } from '../key-file.ts';

// The lines of the ledger: keys as in schemas/ledger-line.json. Ids are keyed hashes, instants ISO 8601 in UTC.

/** `prev` of the first line of a ledger. */
const GENESIS = '0'.repeat(64);

/** The content of a line, without the fields that all lines have. */
export type LedgerContent = Readonly<
  | {
      /** The first line of a run. */
      kind: 'open';
      base_url: string;
      service_id: string;
      requested_by?: string | undefined;
      reason?: string | undefined;
      /** Ids about to be requested. */
      ids: number;
      places: readonly string[];
      /** False if the service is not asked: for a purge alone, and for `person`. */
      requests: boolean;
    }
  /** A request is about to be sent. */
  | { kind: 'before'; id: string }
  | {
      kind: 'after';
      id: string;
      outcome: ClearOutcome | 'retry' | 'wait' | 'stop' | 'undecided';
      code: string;
      status: number | null;
      /** When the deletion was asked for, as the list says. */
      requested_at?: string | undefined;
    }
  /** What a place holds of a person right before its removal. `id`: null for the others on the suppression list. */
  | { kind: 'purge'; id: string | null; place: string; rows: number }
  /**
   * The purge of a place is done; `rows` of all people together. `listed`: people on the suppression list. `stays`:
   * tables and files that others made in the place. `unreached`: something of the place could not be read or removed.
   */
  | { kind: 'purged'; place: string; rows: number; listed: number; stays?: readonly string[]; unreached?: true }
  /** Somebody was shown all that places hold about a person, who was looked for in these ways. */
  | { kind: 'access'; id: string; places: readonly string[]; ways: readonly string[]; rows: number }
>;

export type LedgerLine = LedgerContent & {
  readonly v: 1;
  readonly run: string;
  readonly at: string;
  /** Tells a wrong key from an edited line. */
  readonly key_check: string;
};
type LineOf<K extends LedgerContent['kind']> = Extract<LedgerLine, { kind: K }>;
export type RunLine = LineOf<'open'>;
export type CountLine = LineOf<'purge'>;
export type RemovalLine = LineOf<'purged'>;
export type AccessLine = LineOf<'access'>;
/** Each line has the code (MAC) of the line before it (`prev`), and its own (`mac`), which covers both. */
export type SignedLine = LedgerLine & { readonly prev: string; readonly mac: string };

/** The service whose profiles are deleted: at another one the same id may be another person. */
export interface ServiceAddress {
  readonly baseUrl: string;
  readonly serviceId: string;
}

/** A clear answer of the service. */
export type ClearOutcome = 'done' | 'rejected';

/** The keys of a ledger. Each is derived from one secret under a label of its own: no line can hold the secret. */
export class LedgerKey {
  readonly #ids: HashKey;
  readonly #lines: HashKey;

  constructor(secret: Secret) {
    this.#ids = derived(secret, 'id');
    this.#lines = derived(secret, 'chain');
  }

  /** Tells a wrong key from a changed line, without saying anything of the key. */
  get checkValue(): string {
    return this.#lines.checkValue;
  }

  idHash(id: string): string {
    return this.#ids.hashOf(id);
  }

  /** Code of a line's text for the chain. */
  mac(text: string): string {
    return this.#lines.hashOf(text);
  }
}

function derived(secret: Secret, purpose: string): HashKey {
  const bytes = hkdfSync('sha256', secret.reveal(), '', `dfinery-elt ledger ${purpose} v1`, 32);
  return new HashKey(new Secret(Buffer.from(bytes).toString('hex')));
}

/** Where a chain ends: behind so many lines, which are `size` bytes. `head` is the code of the last. */
export interface ChainEnd {
  readonly lineCount: number;
  readonly size: number;
  readonly head: string;
}
export const EMPTY_CHAIN: ChainEnd = { lineCount: 0, size: 0, head: GENESIS };

/** The text of lines that follow `end`, and the end behind them. */
export function signLines(lines: readonly LedgerLine[], { lineCount, size, head }: ChainEnd, key: LedgerKey) {
  let text = '';
  let mac = head;
  for (const line of lines) {
    const covered = JSON.stringify({ ...line, prev: mac }).slice(0, -1);
    mac = key.mac(covered);
    text += `${covered},"mac":"${mac}"}\n`;
  }
  const end: ChainEnd = { lineCount: lineCount + lines.length, size: size + Buffer.byteLength(text), head: mac };
  return { text, end };
}

const SIGNED = /^(\{.*),"mac":"([0-9a-f]{64})"\}$/s;

/** The line, checked by its own code alone; or why it is not what was written. */
function verifiedLine(bytes: Buffer, key: LedgerKey): SignedLine | string {
  if (!isUtf8(bytes)) return 'is not valid UTF-8';
  const text = bytes.toString();
  const [, covered, mac] = SIGNED.exec(text) ?? [];
  if (covered === undefined || mac === undefined) return 'is not a line of a ledger';
  if (key.mac(covered) !== mac) {
    const isOtherKey = covered.includes('"key_check":"') && !covered.includes(`"key_check":"${key.checkValue}"`);
    return isOtherKey ? 'was written under another ledger_key' : 'was changed';
  }
  const line: SignedLine = JSON.parse(text);
  return line.v === 1 ? line : 'was written by a later version';
}

export const ledgerPathIn = (folder: string): string => join(folder, 'ledger.jsonl');

export const keyedLedger = (path: string, configuredKey: Secret | undefined): KeyedFile => ({
  path,
  keyFileName: 'ledger.key',
  configuredKey,
  optionName: 'ledger_key (DFINERY_LEDGER_KEY)',
  lostKeyText:
    `The ledger in ${dirname(path)} has lost its key: put ledger.key back, or give it as ledger_key (DFINERY_LEDGER_KEY). ` +
    'If it is lost for good, move ledger.jsonl out of the folder: that begins a new ledger. The suppression list stays.',
});

/** A ledger to read, and the key under which its lines are written. */
interface LedgerSource {
  readonly path: string;
  readonly key: LedgerKey;
}

/** Finds the ledger in a file, or in a folder, and its key. Throws UserError if it is not there, or has lost its key. */
export function locateLedger(fileOrFolder: string, configuredKey: Secret | undefined): LedgerSource {
  if (!existsSync(fileOrFolder)) throw configError(`There is no ledger at ${fileOrFolder}.`);
  const path = statSync(fileOrFolder).isDirectory() ? ledgerPathIn(fileOrFolder) : fileOrFolder;
  return { path, key: new LedgerKey(keyForReading(keyedLedger(path, configuredKey))) };
}

/** `number`: 1 for the first line of the ledger. */
type OnLine = (line: SignedLine, number: number) => void;

/**
 * Reads on from `from`, and gives each line to `onLine` that is whole and follows the line before it. Ends at the first
 * problem, a sentence. `tornBytes`: those behind the last line end, as a crash during a write leaves them. They are no
 * line, whatever they hold. A file that is not there is an empty ledger. Memory: one line.
 */
export async function readChain({ path, key }: LedgerSource, from: ChainEnd, onLine: OnLine) {
  let end = from;
  const resultOf = (problem?: string, tornBytes = 0) => ({
    end,
    tornBytes,
    problem: problem && `${basename(path)}, line ${end.lineCount + 1} ${problem}.`,
  });
  const fileSize = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (fileSize < end.size) return resultOf('and lines before it are missing');
  if (fileSize === end.size) return resultOf();
  for await (const pieces of linesOf(createReadStream(path, { start: end.size, end: fileSize - 1 }))) {
    for (const bytes of pieces) {
      const size = end.size + bytes.length + 1;
      if (size > fileSize) return resultOf(undefined, bytes.length);
      const line = verifiedLine(bytes, key);
      if (typeof line === 'string') return resultOf(line);
      if (line.prev !== end.head) return resultOf('does not follow the line before it');
      end = { lineCount: end.lineCount + 1, size, head: line.mac };
      onLine(line, end.lineCount);
    }
  }
  return resultOf();
}

/**
 * Checks a whole ledger, and gives each good line to `onLine`. `head`: the code of a line that must be there, as a run
 * printed it. So a tail that was cut off is found, too. By default it is that before the first line, which every ledger
 * has. The result is schemas/ledger-verdict.json.
 */
export async function verifyLedger(ledger: LedgerSource, head = GENESIS, onLine: OnLine = () => {}) {
  const expectedHead = head.trim().toLowerCase();
  let isHeadSeen = expectedHead === GENESIS;
  const { end, tornBytes, problem } = await readChain(ledger, EMPTY_CHAIN, (line, number) => {
    isHeadSeen ||= line.mac === expectedHead;
    onLine(line, number);
  });
  const cutOff = 'The head given is the code of no line: lines were cut off at the end, or it is of another ledger.';
  const problems = problem === undefined ? [] : [problem];
  if (problem === undefined && !isHeadSeen) problems.push(cutOff);
  return {
    v: 1,
    kind: 'ledger_verdict',
    ok: problems.length === 0,
    file: ledger.path,
    lines: end.lineCount,
    torn_bytes: tornBytes,
    problems,
    head: end.head,
  } as const;
}
