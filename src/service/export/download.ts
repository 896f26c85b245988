import { createHash } from 'node:crypto';
import { formatDuration, HOUR_MS } from '../../base/durations.ts';
import { configError } from '../../base/errors.ts';
import { plainCount } from '../../base/quantities.ts';
import { AGAIN, type Attempt, type Backoff, jittered, retry } from '../../base/retry.ts';
import type { RunIo, Runtime } from '../../base/runtime.ts';
import { Scanner, type ScannerOptions, type ScanResult } from '../../cells/columns/scanner.ts';
import { MalformedCsv, type MalformedReason, UnusableCsv } from '../../cells/csv/malformed.ts';
import { type ExportAnswer, type ExportRefusal, UnreadableBody } from './protocol.ts';

/** Takes the checked bytes of one attempt: UTF-8, LF, without a BOM. */
export interface CheckedOutput {
  /** The bytes are valid until the promise settles. */
  write(bytes: Uint8Array): void | Promise<void>;
  /** Called once behind the last byte. */
  close?(): Promise<void>;
  /** Called if nothing of the attempt counts. */
  discard?(): Promise<void>;
}

/** A body that was received and checked to its last byte. */
export interface CheckedBody<Output extends CheckedOutput = CheckedOutput> {
  readonly kind: 'checked';
  readonly scan: Omit<ScanResult, 'tail'>;
  /** Number of bytes received, and their SHA-256 (hex). */
  readonly bytes: number;
  readonly sha256: string;
  /** What has its checked bytes. */
  readonly output: Output;
}

export interface DownloadRequest<Output extends CheckedOutput> extends RunIo {
  /** Names what is exported, in messages: `2026-01-17`, `profiles`. */
  readonly label: string;
  /** Sends the request once. */
  readonly send: (signal: AbortSignal) => Promise<ExportAnswer>;
  /** Begins an attempt. */
  readonly open: () => Output | Promise<Output>;
  readonly scan: ScannerOptions;
  /** Whether the files of the service end with a line end, as far as that is known; default true. */
  readonly finalNewline?: boolean | undefined;
  /** True if its rows may change between two downloads: those of a day that is not over. Default false. */
  readonly mayGrow?: boolean;
  /** What is counted, also of attempts that fail; with it the clocks are compared. */
  readonly counts?: DownloadCounts;
}

interface DownloadCounts {
  /** Number of exports that the service answered. */
  exports: number;
  /** Bytes of CSV received. */
  bytes: number;
  /** True once a warning has said that the clocks differ. */
  isWarnedOfClock: boolean;
}

const BACKOFF: Backoff = { attempts: 5, baseMs: 1_000, capMs: 120_000 };
/** The 429 after which an export fails. */
const MAX_QUOTA_REFUSALS = 50;
/** Answers that may mean "too large" before it is taken for that. */
const TOO_LARGE_AFTER = 3;
/** The code of a body whose last line may be cut. */
const LAST_LINE = 'last_line';
/** Faults that every download of the same export has. */
const REPEATED_FAULTS: ReadonlySet<string> = new Set<MalformedReason>([
  'no_header',
  'missing_columns',
  'too_many_columns',
  'not_csv',
]);

/**
 * Sends an export, with pauses, until its answer is final. A body whose last line may be cut is believed once another
 * download has as many bytes; with `mayGrow`, once another one ends so. Rows may come in another order. The message of
 * a refusal is a sentence then, but for `retry_or_split`: fewer events must be requested. `retry` and `wait` mean that
 * all attempts failed. Throws what `open` and its output throw, and UserErrors of the quota.
 */
export async function downloadChecked<Output extends CheckedOutput>(
  download: DownloadRequest<Output>,
): Promise<CheckedBody<Output> | ExportRefusal> {
  const { label, clock, random, logger, signal } = download;
  const faults = new Set<string>();
  let refusals = 0;
  let maybeTooLarge = 0;
  /** Lengths of the bodies whose last line may be cut, in bytes. */
  const maybeCut = new Set<number>();
  const attempt = async ({ number, pause }: Attempt) => {
    let answer = await attemptOnce(download);
    if (answer.kind === 'checked') {
      const endsAsUsual = answer.scan.finalNewline === (download.finalNewline ?? true);
      if (endsAsUsual || (maybeCut.size > 0 && download.mayGrow) || maybeCut.has(answer.bytes)) return answer;
      await answer.output.discard?.();
      const message =
        maybeCut.size === 0 ? 'its last line may be cut' : 'it is not complete: each download ends elsewhere';
      maybeCut.add(answer.bytes);
      answer = { kind: 'retry', code: LAST_LINE, message, status: 200 };
    }
    if (answer.emptyAs !== undefined) return answer;
    if (answer.kind === 'wait') {
      if (++refusals < MAX_QUOTA_REFUSALS) return AGAIN;
      return { ...answer, message: `${label}: ${answer.message} Asked ${refusals} times; run again later.` };
    }
    if (answer.kind !== 'retry' && answer.kind !== 'retry_or_split') return answer;
    if (isFinal(answer, faults)) {
      const message = `The export of ${label} is broken, and would be again: ${answer.message}. Nothing of it was stored.`;
      return { ...answer, kind: 'retry' as const, message };
    }
    const { code: cause } = answer;
    // The user can search for the code.
    const why = answer.message.endsWith(')') ? answer.message : `${answer.message} (${cause})`;
    if (answer.kind === 'retry_or_split' && ++maybeTooLarge >= TOO_LARGE_AFTER) {
      const message = `${label}, attempt ${number}: ${why} again and again.`;
      logger.warn('export.given_up', message, { attempt: number, cause });
      return answer;
    }
    if (pause === undefined) {
      const message = `The export of ${label} failed ${number} times, at last because ${why}; nothing of it was stored, run again later.`;
      return { ...answer, kind: 'retry' as const, message };
    }
    const message = `${label}, attempt ${number} of ${BACKOFF.attempts}: ${why}; again in ${formatDuration(pause)}.`;
    // A service that never ends its files with a line end needs no warning each time.
    const level = cause === LAST_LINE && maybeCut.size === 1 ? 'info' : 'warn';
    logger[level]('export.retry', message, { attempt: number, cause, pause_ms: pause });
    return undefined;
  };
  const answer = await retry({ pauses: jittered(BACKOFF, random), clock, signal }, attempt);
  if (answer === undefined) throw new Error('the last attempt gives an answer');
  if (answer.kind === 'checked') warnOfInvalidUtf8(answer, download);
  return answer;
}

/** Sends one request and checks its body. A body that is broken or has no byte is a refusal with status 200. */
async function attemptOnce<Output extends CheckedOutput>(
  download: DownloadRequest<Output>,
): Promise<CheckedBody<Output> | ExportRefusal> {
  const { send, open, signal, counts } = download;
  signal.throwIfAborted();
  const answer = await send(signal);
  try {
    if (counts !== undefined) countAnswer(answer, counts, download);
    if (answer.kind !== 'data') return answer;
    const output = await open();
    return await checkBody(answer.bytes, output, download).catch((error: unknown) => {
      signal.throwIfAborted();
      return refusalOfBody(error);
    });
  } finally {
    if (answer.kind === 'data') await answer.close();
  }
}

/** Differences between the clocks (ms) from which a run warns, and from which it ends. */
const CLOCK_WARNING_MS = HOUR_MS;
const CLOCK_LIMIT_MS = 12 * HOUR_MS;

/**
 * Counts an answer, and compares the clock of the service with that of this machine. Warns once if they are more than
 * an hour apart; throws a configuration failure above twelve, since the wrong days would be read.
 */
function countAnswer(
  answer: ExportAnswer,
  counts: DownloadCounts,
  { clock, logger }: Pick<Runtime, 'clock' | 'logger'>,
): void {
  if (answer.kind === 'data' || answer.status !== undefined) counts.exports++;
  const now = clock.now();
  const { serverTime = now } = answer;
  const apart = Math.abs(now - serverTime);
  if (apart <= CLOCK_WARNING_MS) return;
  const [here, there] = [now, serverTime].map((time) => new Date(time).toISOString());
  const message = `The clock of this machine (${here}) and that of the service (${there}) are ${formatDuration(apart)} apart`;
  if (apart > CLOCK_LIMIT_MS) throw configError(`${message}: set this clock right, nothing was stored with it.`);
  if (!counts.isWarnedOfClock) logger.warn('clock.apart', `${message}.`);
  counts.isWarnedOfClock = true;
}

/** Checks a body to its last byte. Throws MalformedCsv, UnusableCsv, and what its bytes and the output throw. */
export async function checkBody<Output extends CheckedOutput>(
  body: AsyncIterable<Uint8Array>,
  output: Output,
  { scan: options, counts, signal }: Pick<DownloadRequest<Output>, 'scan' | 'counts' | 'signal'>,
): Promise<CheckedBody<Output>> {
  const scanner = new Scanner(options);
  const hash = createHash('sha256');
  let bytes = 0;
  try {
    for await (const chunk of body) {
      signal.throwIfAborted();
      bytes += chunk.length;
      if (counts !== undefined) counts.bytes += chunk.length;
      hash.update(chunk);
      for (const part of scanner.push(chunk)) await output.write(part);
    }
    const { tail, ...scan } = scanner.finish();
    for (const part of tail) await output.write(part);
    await output.close?.();
    return { kind: 'checked', scan, bytes, sha256: hash.digest('hex'), output };
  } catch (error) {
    await output.discard?.();
    throw error;
  }
}

function warnOfInvalidUtf8(
  { scan }: CheckedBody,
  { label, logger }: Pick<DownloadRequest<CheckedOutput>, 'label' | 'logger'>,
) {
  const { cells, first } = scan.invalidUtf8;
  if (first === undefined) return;
  const message =
    `${label}: bytes that are not valid UTF-8 are kept as U+FFFD, in ${plainCount(cells, 'cell')}, ` +
    `first in row ${first.row}, column ${first.column}.`;
  logger.warn('export.invalid_utf8', message, { cells, ...first });
}

function refusalOfBody(error: unknown): ExportRefusal {
  const status = 200;
  if (error instanceof MalformedCsv) {
    const { reason: code, where, expected, found } = error;
    if (code === 'empty_body')
      return { kind: 'retry', code, message: 'its body has no byte', status, emptyAs: 'no byte' };
    const message = `row ${where.row} (byte ${where.byte}) of the body is broken: expected ${expected}, found ${found}`;
    return { kind: 'retry', code, message, status, where };
  }
  if (error instanceof UnusableCsv) return { kind: 'config', code: 'not_csv', message: error.message, status };
  if (!(error instanceof UnreadableBody)) throw error;
  const { fault: code, message } = error;
  return { kind: code === 'stall' ? 'retry_or_split' : 'retry', code, message, status };
}

/** True if another download is of no use: an earlier one was broken at the same place in the same way. */
function isFinal({ code, where }: ExportRefusal, faults: Set<string>): boolean {
  if (where === undefined) return false;
  const fault = `${code} ${where.row}`;
  const isRepeated = faults.has(fault);
  faults.add(fault);
  return isRepeated || REPEATED_FAULTS.has(code);
}
