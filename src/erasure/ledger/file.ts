import { isUtf8 } from 'node:buffer';
import { closeSync, createReadStream, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { configError, EXIT } from '../../base/errors.ts';
import { isObject, type JsonObject, jsonOf } from '../../base/json.ts';
import { linesOf } from '../../base/lines.ts';
import { OWNER_FILE, syncFolder } from '../../fs/atomic-file.ts';
import type { LockFile } from '../../fs/lock.ts';
import type { LedgerKey } from './key.ts';
import { type Chained, type LedgerOutput, type Line, verifyLine } from './line.ts';

const NAME = /^ledger-(\d{6,})-([0-9A-Za-z]+)\.jsonl$/;

/** True if a folder of this mode lets other users remove files. */
export const isOpenToOthers = (mode: number): boolean => process.getuid !== undefined && (mode & 0o022) !== 0;

/** One run's file in a ledger's folder. */
export interface LedgerFile {
  readonly path: string;
  readonly name: string;
  /** Place of the file in the chain, from 1. */
  readonly number: number;
  readonly run: string;
}

/**
 * The files of a folder in the order of the chain. Throws a configuration failure for a link or a folder of such a
 * name.
 */
export function ledgerFiles(folder: string): LedgerFile[] {
  const files = readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const found = fileOf(folder, entry.name);
    if (found === undefined) return [];
    if (entry.isFile()) return [found];
    throw configError(`${found.path} has the name of a ledger and is no regular file: put the ledger itself there.`);
  });
  return files.sort((a, b) => a.number - b.number);
}

export const fileName = (number: number, run: string): string =>
  `ledger-${String(number).padStart(6, '0')}-${run}.jsonl`;

/** The file of this name; undefined if the name is not that of a file of a ledger. */
export function fileOf(folder: string, name: string): LedgerFile | undefined {
  const [, number, run] = NAME.exec(name) ?? [];
  return number && run ? { path: join(folder, name), name, number: Number(number), run } : undefined;
}

/**
 * The file of a new run (0600), after those that are there. Its name is on disk when this returns; so is each line when
 * its `write` returns. Nothing is written once another run has taken the lock, while this process was suspended.
 */
export async function createLedgerFile(
  folder: string,
  run: string,
  lock: Pick<LockFile, 'checkHeld'>,
): Promise<LedgerOutput> {
  const number = (ledgerFiles(folder).at(-1)?.number ?? 0) + 1;
  lock.checkHeld();
  const file = await open(join(folder, fileName(number, run)), 'ax', OWNER_FILE);
  await syncFolder(folder);
  return {
    async write(lines) {
      lock.checkHeld();
      await file.writeFile(`${lines.join('\n')}\n`);
      await file.datasync();
    },
    close: () => file.close(),
  };
}

/** What is known of a file that was read to its end or to its first problem. */
export interface FileFacts {
  readonly lines: number;
  /** `prev` of the first line; undefined for a file without any. */
  readonly first?: string;
  /** Code of the last whole line. */
  readonly head?: string;
  readonly isClosed: boolean;
  /** Bytes after the last complete line, as a crash during a write leaves them. */
  readonly tornBytes: number;
  /** The first problem, at a line from 1. */
  readonly broken?: { readonly line: number; readonly problem: string };
}

type See = (line: Chained, number: number) => void;

/** Reads one file of a ledger, checks every line and its place, and shows each good line to `see`. Memory: one line. */
export async function readLedgerFile(path: string, key: LedgerKey, see: See = () => {}): Promise<FileFacts> {
  let facts: FileFacts = { lines: 0, isClosed: false, tornBytes: 0 };
  const brokenBy = (problem: string): FileFacts => ({ ...facts, broken: { line: facts.lines + 1, problem } });
  let hasLineEnd = true;
  const watched = async function* () {
    for await (const chunk of createReadStream(path)) {
      hasLineEnd = chunk[chunk.length - 1] === 0x0a;
      yield chunk;
    }
  };
  // Only the last line of a file may be torn; that a line is not the last is known when the next one is read.
  let bad: { readonly bytes: number; readonly problem: string } | undefined;
  for await (const chunk of linesOf(watched())) {
    for (const bytes of chunk) {
      if (bad) return brokenBy(bad.problem);
      // Bytes that are no text read like the replacement character, which a reason may hold.
      const found = isUtf8(bytes) ? verifyLine(bytes.toString(), key) : { problem: 'is not valid UTF-8' };
      if ('problem' in found) {
        bad = { bytes: bytes.length, problem: found.problem };
        continue;
      }
      const { line } = found;
      const { lines, first = line.prev, head, isClosed } = facts;
      if (head !== undefined && line.prev !== head) return brokenBy('does not follow the line before it');
      if (isClosed) return brokenBy('comes after the closing line');
      if ((lines === 0) !== (line.kind === 'open')) return brokenBy('is not allowed at this place');
      facts = { ...facts, lines: lines + 1, first, head: line.mac, isClosed: line.kind === 'close' };
      see(line, facts.lines);
    }
  }
  if (bad === undefined) return facts;
  // A closed run writes nothing more. A line with a line end was written completely: if it is invalid, it was edited.
  if (facts.isClosed) return brokenBy('comes after the closing line');
  return hasLineEnd ? brokenBy(bad.problem) : { ...facts, tornBytes: bad.bytes };
}

/** Reads a file whose contents the run relies on. Throws a config failure for a wrong key and for any other problem. */
export async function readSoundFile(file: LedgerFile, key: LedgerKey, see?: See): Promise<FileFacts> {
  const open = openLineOf(file.path);
  if (open?.key_check !== undefined && open.key_check !== key.check) {
    throw configError(`The ledger ${file.name} was written under another key: give that one as ledger_key.`);
  }
  const facts = await readLedgerFile(file.path, key, see);
  if (facts.broken === undefined) return facts;
  const { line, problem } = facts.broken;
  throw configError(
    `The ledger ${file.name} is broken: line ${line} ${problem}. Put the file back as it was, or begin a new ledger_dir.`,
    { exitCode: EXIT.failed },
  );
}

/** Maximum length of a line (bytes). */
const MAX_LINE = 64 * 1024;

/** The first line of a file, not verified; undefined for a file without a complete line. */
export const openLineOf = (path: string): Partial<Line<'open'>> | undefined =>
  parseUnverified(readPart(path, () => 0).split('\n', 1)[0]);

/** True if the last complete line of a file is a closing line; the line is not verified. */
export function endsClosed(path: string): boolean {
  const lines = readPart(path, (size) => Math.max(0, size - MAX_LINE)).split('\n');
  return parseUnverified(lines.at(-2) ?? '')?.kind === 'close';
}

function readPart(path: string, from: (size: number) => number): string {
  const fd = openSync(path, 'r');
  try {
    const buffer = Buffer.allocUnsafe(MAX_LINE);
    return buffer.toString('utf8', 0, readSync(fd, buffer, 0, buffer.length, from(fstatSync(fd).size)));
  } finally {
    closeSync(fd);
  }
}

function parseUnverified(text: string): JsonObject | undefined {
  const line = jsonOf(text);
  return isObject(line) ? line : undefined;
}
