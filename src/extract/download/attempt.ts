import { createHash } from 'node:crypto';
import { Failure } from '../../base/errors.ts';
import { MalformedCsv } from '../../csv/malformed.ts';
import type { ScanResult } from '../../schema/scanner.ts';
import type { ExportAnswer, ExportBody, ExportRequest } from '../../service/export/answer.ts';
import type { Refusal } from '../../service/export/retry.ts';
import { keyOf } from '../export-request.ts';
import { earlierReading } from '../plan/days.ts';
import type { SpoolWriter } from '../spool/spool-writer.ts';
import type { ExportFile } from './download.ts';
import { compareClocks, type Run } from './run.ts';

/** The result of one request: a file, an answer without data, or a broken body, which is treated as such an answer. */
export type Attempt = ExportFile | Refusal;

/** Sends one request and reads its answer into a verified file. Of broken bodies only the inspected one is kept. */
export async function attemptExport(run: Run, request: ExportRequest, inspection: Inspection): Promise<Attempt> {
  const machine = run.deps.clock.now();
  const answer = await send(run, request);
  compareClocks(run, run.deps.clock.now(), answer.serverTime);
  if (answer.kind !== 'data') return answer;
  const sentAt = earlierReading(machine, answer.serverTime);
  const writer = await openWriter(run, answer);
  try {
    return await receive(run, answer, { request, sentAt, writer, inspection });
  } finally {
    await answer.close();
    await writer.file.drop();
  }
}

/** Sends the request and counts it, whether or not it succeeds. */
async function send(run: Run, request: ExportRequest): Promise<ExportAnswer> {
  try {
    return await run.deps.service.exportEvents(request, run.signal, {
      uncompressed: run.known.finalNewline === false,
    });
  } finally {
    run.tally.exports = run.deps.service.sent - run.sentBefore;
  }
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
  readonly request: ExportRequest;
  readonly sentAt: number;
  readonly writer: Opened;
  readonly inspection: Inspection;
}

async function receive(run: Run, answer: ExportBody, at: Receiving): Promise<Attempt> {
  const raw = at.inspection.isNext ? await run.spool.create(run.spool.nextId()) : undefined;
  const body: Body = { bytes: 0, raw, hash: createHash('sha256') };
  try {
    const scan = await scanBody(run, answer, at.writer.file, body);
    return await stored(run, answer, at, scan, body);
  } catch (error) {
    run.signal.throwIfAborted();
    const broken = brokenBody(error);
    if (broken === undefined) throw error;
    if (broken.code === 'empty_body' && run.deps.options.emptyBody === 'no_rows') return noRows(run, at, body);
    if (broken.how !== undefined) await inspect(run, at.inspection, broken.how, raw);
    return { kind: broken.code === 'stall' ? 'retry_or_split' : 'retry', code: broken.code, message: broken.message };
  } finally {
    await raw?.drop();
  }
}

async function inspect(run: Run, inspection: Inspection, how: string, raw: SpoolWriter | undefined): Promise<void> {
  if (!inspection.isEnough(how) || raw === undefined) return;
  await raw.finish();
  inspection.keptAs = await run.spool.keepForInspection(raw);
}

interface Body {
  bytes: number;
  /** Receives the bytes unchanged, if this may be the body that is kept for inspection. */
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

async function stored(run: Run, answer: ExportBody, at: Receiving, scan: ScanResult, body: Body): Promise<ExportFile> {
  const spoolCrc = await at.writer.file.finish();
  const path = await run.spool.complete(at.writer.file, at.writer.id);
  const { tail: _tail, ...found } = scan;
  return fileOf(run, at, body, { path, spoolCrc, scan: found, endDeclared: answer.endDeclared });
}

function fileOf(
  run: Run,
  { request, sentAt, writer }: Receiving,
  { bytes, hash }: Body,
  more: Pick<ExportFile, 'path' | 'scan' | 'spoolCrc' | 'endDeclared'>,
): ExportFile {
  const verifiedAt = new Date(run.deps.clock.now()).toISOString();
  const origin = { id: writer.id, key: keyOf(request), sentAt, verifiedAt, exports: 1 };
  return { kind: 'file', ...origin, bytes, sha256: hash.digest('hex'), ...more };
}

/** Zero bytes, where the configuration says that they mean no rows. */
function noRows(run: Run, at: Receiving, body: Body): ExportFile {
  const scan = {
    header: [],
    columns: [],
    rows: 0,
    suppressed: 0,
    longestRow: 0,
    hasDuplicateOrMissingIds: false,
    finalNewline: true,
    invalidUtf8: { cells: 0 },
    outLength: 0,
    rowEnds: [],
    eventNames: [],
  };
  return fileOf(run, at, body, { path: undefined, spoolCrc: 0, scan, endDeclared: false });
}

class EmptyBody extends Error {}

/** A clause that can follow "because", like the messages of refusals. */
const clauseOf = ({ where, expected, found }: MalformedCsv): string =>
  `row ${where.row} (byte ${where.byte}) of the body is broken: expected ${expected}, found ${found}`;

interface BrokenBody {
  readonly code: string;
  readonly message: string;
  /** Equal for two bodies broken in the same way at the same place; absent if inspecting the body would not help. */
  readonly how?: string;
}

/** What is wrong with a body that can be requested again; undefined for other errors (a full disk, a defect). */
function brokenBody(error: unknown): BrokenBody | undefined {
  if (error instanceof EmptyBody) return { code: 'empty_body', message: 'the answer had no byte at all' };
  if (error instanceof MalformedCsv) {
    return { code: error.reason, message: clauseOf(error), how: `${error.reason} ${error.where.row}` };
  }
  if (error instanceof Failure && error.kind === 'transient' && error.where.file === undefined) {
    return { code: /^[a-z_]+/.exec(error.internal)?.[0] ?? 'reset', message: error.message };
  }
  return undefined;
}

/** Counts the bodies of one export that were malformed in the same way; the last one is kept so that a person can inspect it. */
export class Inspection {
  readonly #most: number;
  readonly #keeps: boolean;
  readonly #counts = new Map<string, number>();
  /** True when the limit is reached: the export is not requested again. */
  isOver = false;
  /** Path of the kept body. */
  keptAs: string | undefined;

  /** `most`: limit of bodies malformed in the same way. `keeps`: whether a body may be kept with all its columns. */
  constructor(most: number, keeps: boolean) {
    this.#most = most;
    this.#keeps = keeps;
  }

  /** True when the next body may be the one to keep: its bytes are written unchanged. */
  get isNext(): boolean {
    return this.#keeps && [...this.#counts.values()].some((count) => count >= this.#most - 1);
  }

  /** Counts a malformed body; true when the limit is reached. */
  isEnough(how: string): boolean {
    const count = (this.#counts.get(how) ?? 0) + 1;
    this.#counts.set(how, count);
    this.isOver = count >= this.#most;
    return this.isOver;
  }
}
