import { createHash } from 'node:crypto';
import { Failure } from '../../base/errors.ts';
import { MalformedCsv } from '../../csv/malformed.ts';
import type { ScanResult } from '../../schema/scanner.ts';
import type { ExportAnswer, ExportBody, ExportRefusal } from '../../service/export/answer.ts';
import type { ExportQuestion } from '../../service/export/request.ts';
import { cautiousNow } from '../plan/calendar.ts';
import { keyOf } from '../question.ts';
import type { SpoolWriter } from '../spool/spool-writer.ts';
import { type Run, watchClocks } from './run.ts';
import type { Verified } from './verified.ts';

/** A body that was not whole: `code` says how, `same` is equal for two bodies broken in the same way. */
export interface Broken {
  readonly kind: 'broken';
  readonly code: string;
  readonly message: string;
  readonly same: string | undefined;
}

/** A whole body whose last line had no end, nor did the wire say where it ends: it may have been cut there. */
export interface Unconfirmed {
  readonly kind: 'unconfirmed';
  readonly part: Verified;
  readonly spoolCrc: number;
}

export type Attempt =
  | { readonly kind: 'verified'; readonly part: Verified; readonly spoolCrc: number }
  | Unconfirmed
  | Broken
  | ExportRefusal;

/** One export from the request to a verified file. Broken bodies leave nothing behind unless `inspect` is asked for. */
export async function attemptExport(run: Run, question: ExportQuestion, inspect: Inspect): Promise<Attempt> {
  const machine = run.deps.clock.now();
  const answer = await send(run, question);
  watchClocks(run, run.deps.clock.now(), answer.serverTime);
  if (answer.kind !== 'data') return answer;
  const sentAt = cautiousNow(machine, answer.serverTime);
  const writer = await openWriter(run, answer);
  try {
    return await receive(run, answer, { question, sentAt, writer, inspect });
  } finally {
    await answer.close();
    await writer.file.drop();
  }
}

/** Counts what was sent, whatever became of it. */
async function send(run: Run, question: ExportQuestion): Promise<ExportAnswer> {
  try {
    return await run.deps.service.exportEvents(question, run.signal);
  } finally {
    run.tally.exports = run.deps.service.sent - run.sentBefore;
  }
}

/** What decides whether a broken body stays for a person to look at; the path it stays under is told to whoever asks. */
export interface Inspect {
  /** True when one more body broken in the same way would be kept. */
  readonly armed: () => boolean;
  readonly wants: (same: string) => boolean;
  readonly kept: (path: string) => void;
}

interface Opened {
  readonly id: string;
  readonly file: SpoolWriter;
}

async function openWriter(run: Run, answer: ExportBody): Promise<Opened> {
  const id = run.spool.nextId();
  try {
    return { id, file: await run.spool.create(id) };
  } catch (error) {
    await answer.close();
    throw error;
  }
}

interface Receiving {
  readonly question: ExportQuestion;
  readonly sentAt: number;
  readonly writer: Opened;
  readonly inspect: Inspect;
}

async function receive(run: Run, answer: ExportAnswer & ExportBody, at: Receiving): Promise<Attempt> {
  const raw = at.inspect.armed() ? await run.spool.create(run.spool.nextId()) : undefined;
  const body: Body = { bytes: 0, raw, hash: createHash('sha256') };
  try {
    const scan = await scanBody(run, answer, at.writer.file, body);
    return await settle(run, answer, at, scan, body.bytes, body.hash.digest('hex'));
  } catch (error) {
    run.signal.throwIfAborted();
    const broken = brokenFrom(error);
    if (broken === undefined) throw error;
    if (broken.code === 'empty_body' && run.deps.options.emptyBody === 'no_rows') {
      return { kind: 'verified', part: nothing(run, at, body.bytes, body.hash.digest('hex')), spoolCrc: 0 };
    }
    await inspected(run, at, broken, raw);
    return broken;
  } finally {
    await raw?.drop();
  }
}

async function inspected(run: Run, at: Receiving, broken: Broken, raw: SpoolWriter | undefined): Promise<void> {
  if (broken.same === undefined || broken.code === 'empty_body') return;
  if (!at.inspect.wants(broken.same) || raw === undefined) return;
  await raw.finish();
  at.inspect.kept(await run.spool.keepForInspection(raw));
}

interface Body {
  bytes: number;
  /** Where the bytes go as they came, when this may be the body that is shown to a person. */
  readonly raw: SpoolWriter | undefined;
  readonly hash: ReturnType<typeof createHash>;
}

async function scanBody(run: Run, answer: ExportBody, file: SpoolWriter, body: Body): Promise<ScanResult> {
  const scanner = run.scanner();
  for await (const chunk of answer.bytes) {
    run.signal.throwIfAborted();
    body.bytes += chunk.length;
    run.tally.bytes += chunk.length;
    body.hash.update(chunk);
    if (body.raw !== undefined) await writeAll(body.raw, [chunk]);
    await writeAll(file, scanner.push(chunk));
  }
  if (body.bytes === 0) throw new EmptyBody();
  const scan = scanner.finish();
  await writeAll(file, scan.tail);
  return scan;
}

async function writeAll(file: SpoolWriter, chunks: readonly Uint8Array[]): Promise<void> {
  for (const chunk of chunks) {
    const waiting = file.write(chunk);
    if (waiting !== undefined) await waiting;
  }
}

async function settle(
  run: Run,
  answer: ExportBody,
  at: Receiving,
  scan: ScanResult,
  bytes: number,
  sha256: string,
): Promise<Attempt> {
  const spoolCrc = await at.writer.file.finish();
  const path = await run.spool.settle(at.writer.file, at.writer.id);
  const { tail: _tail, ...kept } = scan;
  const part: Verified = { ...origin(run, at), path, scan: kept, bytes, sha256 };
  const certain = scan.finalNewline || answer.endDeclared || run.known.finalNewline === false;
  return { kind: certain ? 'verified' : 'unconfirmed', part, spoolCrc };
}

function origin(run: Run, { question, sentAt, writer }: Receiving) {
  const verifiedAt = new Date(run.deps.clock.now()).toISOString();
  return { id: writer.id, key: keyOf(question), sentAt, verifiedAt, exports: 1 };
}

function nothing(run: Run, at: Receiving, bytes: number, sha256: string): Verified {
  const scan = {
    header: [],
    columns: [],
    rows: 0,
    suppressed: 0,
    longestRow: 0,
    keysNeedWork: false,
    finalNewline: true,
    invalidUtf8: { cells: 0 },
    outLength: 0,
    eventNames: [],
  };
  return { ...origin(run, at), path: undefined, scan, bytes, sha256 };
}

class EmptyBody extends Error {}

/** Goes behind "because", as the service's own reasons do. */
const clauseOf = ({ where, expected, found }: MalformedCsv): string =>
  `row ${where.row} (byte ${where.byte}) of the body is broken: expected ${expected}, found ${found}`;

/** What can be asked for again; undefined for everything else (a full disk, a defect). */
function brokenFrom(error: unknown): Broken | undefined {
  if (error instanceof EmptyBody) {
    return { kind: 'broken', code: 'empty_body', message: 'the answer had no byte at all', same: undefined };
  }
  if (error instanceof MalformedCsv) {
    const same = `${error.reason} ${error.where.row}`;
    return { kind: 'broken', code: error.reason, message: clauseOf(error), same };
  }
  if (error instanceof Failure && error.kind === 'transient' && error.where.file === undefined) {
    const code = /^[a-z_]+/.exec(error.internal)?.[0] ?? 'reset';
    return { kind: 'broken', code, message: error.message, same: undefined };
  }
  return undefined;
}
