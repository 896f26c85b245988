import { createHash } from 'node:crypto';
import { UserError } from '../../base/errors.ts';
import { MalformedCsv } from '../../csv/malformed.ts';
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
  const { clock, options } = run.deps;
  const machine = clock.now();
  const answer = await send(run, request);
  compareClocks(run, clock.now(), answer.serverTime);
  if (answer.kind !== 'data') return answer;
  const id = run.spool.nextId();
  const fileOf = (read: ReadBody): ExportFile => ({
    kind: 'file',
    id,
    key: keyOf(request),
    sentAt: earlierReading(machine, answer.serverTime),
    verifiedAt: new Date(clock.now()).toISOString(),
    exports: 1,
    endDeclared: answer.endDeclared,
    ...read,
  });
  let file: SpoolWriter | undefined;
  // Receives the bytes unchanged, if this may be the body that is kept for inspection.
  let raw: SpoolWriter | undefined;
  try {
    file = await run.spool.create(id);
    if (inspection.isNext) raw = await run.spool.create(run.spool.nextId());
    const body = await scanBody(run, answer, file, raw);
    const spoolCrc = await file.finish();
    return fileOf({ ...body, spoolCrc, path: await run.spool.complete(file, id) });
  } catch (error) {
    run.signal.throwIfAborted();
    const broken = brokenBody(error);
    if (broken === undefined) throw error;
    if (broken.code === 'empty_body' && options.emptyBody === 'no_rows') return fileOf(NO_ROWS);
    if (broken.how !== undefined) await inspect(run, inspection, broken.how, raw);
    return { kind: broken.code === 'stall' ? 'retry_or_split' : 'retry', code: broken.code, message: broken.message };
  } finally {
    await answer.close();
    await file?.drop();
    await raw?.drop();
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

async function inspect(run: Run, inspection: Inspection, how: string, raw: SpoolWriter | undefined): Promise<void> {
  if (!inspection.isEnough(how) || raw === undefined) return;
  await raw.finish();
  inspection.keptAs = await run.spool.keepForInspection(raw);
}

type ReadBody = Pick<ExportFile, 'bytes' | 'sha256' | 'scan' | 'spoolCrc' | 'path'>;

async function scanBody(
  run: Run,
  answer: ExportBody,
  file: SpoolWriter,
  raw: SpoolWriter | undefined,
): Promise<Pick<ReadBody, 'bytes' | 'sha256' | 'scan'>> {
  const scanner = run.newScanner();
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of answer.bytes) {
    run.signal.throwIfAborted();
    bytes += chunk.length;
    run.tally.bytes += chunk.length;
    run.deps.onReceived?.(bytes);
    hash.update(chunk);
    if (raw !== undefined) await writeAll(raw, [chunk]);
    await writeAll(file, scanner.push(chunk));
  }
  if (bytes === 0) throw new EmptyBody();
  const { tail, ...scan } = scanner.finish();
  await writeAll(file, tail);
  return { bytes, sha256: hash.digest('hex'), scan };
}

async function writeAll(file: SpoolWriter, chunks: readonly Uint8Array[]): Promise<void> {
  for (const chunk of chunks) {
    const waiting = file.write(chunk);
    if (waiting !== undefined) await waiting;
  }
}

/** Zero bytes, where the configuration says that they mean no rows. */
const NO_ROWS: ReadBody = {
  bytes: 0,
  sha256: createHash('sha256').digest('hex'),
  spoolCrc: 0,
  path: undefined,
  scan: {
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
  },
};

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
  if (error instanceof UserError && error.kind === 'transient' && error.where.file === undefined) {
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
