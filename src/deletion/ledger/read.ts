import { isUtf8 } from 'node:buffer';
import { closeSync, createReadStream, fstatSync, openSync, readSync } from 'node:fs';
import { configFailure, EXIT } from '../../base/errors.ts';
import { linesOf } from '../../base/lines.ts';
import { unseal } from './chain.ts';
import type { LedgerFile } from './files.ts';
import { KEY_VERSION, type LedgerKey } from './key.ts';
import type { Chained, OpenLine } from './line.ts';

/** A problem of a file, by line; reading stops at the first one. */
interface Break {
  /** From 1. */
  readonly line: number;
  readonly problem: string;
}

/** What is known of a file after reading it to its end or its first problem. */
export interface FileFacts {
  readonly lines: number;
  /** `prev` of the first line; undefined for a file without any. */
  readonly first: string | undefined;
  /** Code of the last whole line. */
  readonly head: string | undefined;
  readonly isClosed: boolean;
  /** Bytes after the last complete line, as a crash during a write leaves them. */
  readonly tornBytes: number;
  readonly broken: Break | undefined;
}

/** Reads one file of a ledger, checks every line and its place, and shows each good line to `see`. Memory: one line. */
export async function readLedgerFile(
  path: string,
  key: LedgerKey,
  see: (line: Chained, number: number) => void = () => {},
): Promise<FileFacts> {
  const reading = new Reading(key, see);
  const ends = new LastByte();
  for await (const lines of linesOf(ends.watch(createReadStream(path)))) {
    for (const bytes of lines) if (!reading.take(bytes)) return reading.facts(true);
  }
  return reading.facts(ends.isWhole);
}

class Reading {
  readonly #key: LedgerKey;
  readonly #see: (line: Chained, number: number) => void;
  #lines = 0;
  #first: string | undefined;
  #head: string | undefined;
  #isClosed = false;
  #broken: Break | undefined;
  #bad: { readonly bytes: number; readonly problem: string } | undefined;

  constructor(key: LedgerKey, see: (line: Chained, number: number) => void) {
    this.#key = key;
    this.#see = see;
  }

  /** False when reading must stop. */
  take(bytes: Buffer): boolean {
    if (this.#bad) return this.#break(this.#bad.problem);
    // Bytes that are no text read like the replacement character, which a reason may hold.
    const found = isUtf8(bytes) ? unseal(bytes.toString(), this.#key) : { problem: 'is not valid UTF-8' };
    if ('problem' in found) {
      // Only the last line of a file may be torn; whether this is the last is known when the next line is read.
      this.#bad = { bytes: bytes.length, problem: found.problem };
      return true;
    }
    const { line } = found;
    if (this.#head !== undefined && line.prev !== this.#head) return this.#break('does not follow the line before it');
    if (this.#isClosed) return this.#break('comes after the closing line');
    if ((this.#lines === 0) !== (line.kind === 'open')) return this.#break('is not allowed at this place');
    this.#first ??= line.prev;
    this.#head = line.mac;
    this.#isClosed = line.kind === 'close';
    this.#lines++;
    this.#see(line, this.#lines);
    return true;
  }

  facts(isWhole: boolean): FileFacts {
    // A line with a line end was written completely: if it is invalid, it was edited. A closed run writes nothing more.
    if (this.#bad && (isWhole || this.#isClosed)) {
      this.#break(this.#isClosed ? 'comes after the closing line' : this.#bad.problem);
    }
    return {
      lines: this.#lines,
      first: this.#first,
      head: this.#head,
      isClosed: this.#isClosed,
      tornBytes: this.#bad && !this.#broken ? this.#bad.bytes : 0,
      broken: this.#broken,
    };
  }

  #break(problem: string): false {
    this.#broken ??= { line: this.#lines + 1, problem };
    return false;
  }
}

class LastByte {
  isWhole = true;

  async *watch(input: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of input) {
      this.isWhole = chunk[chunk.length - 1] === 0x0a;
      yield chunk;
    }
  }
}

/** Reads a file whose contents the run relies on. Throws a config failure for a wrong key and for any other problem. */
export async function readSoundFile(
  file: LedgerFile,
  key: LedgerKey,
  see?: (line: Chained, number: number) => void,
): Promise<FileFacts> {
  const open = openLineOf(file.path);
  if (open && isOldFormat(open)) {
    throw configFailure(
      `The ledger ${file.name} ${OLD_FORMAT}: keep its folder as it is, and set ledger_dir to a new one.`,
    );
  }
  if (open?.key_check !== undefined && open.key_check !== key.check) {
    throw configFailure(`The ledger ${file.name} was written under another key: give that one as ledger_key.`);
  }
  const facts = await readLedgerFile(file.path, key, see);
  if (facts.broken === undefined) return facts;
  const { line, problem } = facts.broken;
  throw configFailure(
    `The ledger ${file.name} is broken: line ${line} ${problem}. Put the file back as it was, or begin a new ledger_dir.`,
    { exitCode: EXIT.failed },
  );
}

/** Part of a message about a file with an older key derivation. */
export const OLD_FORMAT = 'is of a former format, whose seals could be forged and are not believed';

export const isOldFormat = (open: Partial<OpenLine>): boolean =>
  open.kind === 'open' && open.key_version !== KEY_VERSION;

const LONGEST_LINE = 64 * 1024;

/** The first line of a file, not verified; undefined for a file without a complete line. */
export function openLineOf(path: string): Partial<OpenLine> | undefined {
  const text = partOf(path, () => 0);
  const end = text.indexOf('\n');
  return parsed(end === -1 ? text : text.slice(0, end));
}

/** Whether the last complete line of a file is a closing line; not verified. */
export function endsClosed(path: string): boolean {
  const lines = partOf(path, (size) => Math.max(0, size - LONGEST_LINE)).split('\n');
  const line = parsed(lines[lines.length - 2] ?? '');
  return line !== undefined && 'kind' in line && line.kind === 'close';
}

function partOf(path: string, from: (size: number) => number): string {
  const fd = openSync(path, 'r');
  try {
    const buffer = Buffer.allocUnsafe(LONGEST_LINE);
    return buffer.toString('utf8', 0, readSync(fd, buffer, 0, buffer.length, from(fstatSync(fd).size)));
  } finally {
    closeSync(fd);
  }
}

function parsed(text: string): object | undefined {
  try {
    const line: unknown = JSON.parse(text);
    return typeof line === 'object' && line !== null ? line : undefined;
  } catch {
    return undefined;
  }
}
