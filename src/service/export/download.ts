import { createHash } from 'node:crypto';
import { formatDuration } from '../../base/durations.ts';
import { type Attempt, type Backoff, jittered, retry } from '../../base/retry.ts';
import type { Runtime } from '../../base/runtime.ts';
import { Scanner, type ScannerOptions, type ScanResult } from '../../cells/columns/scanner.ts';
import { MalformedCsv, type MalformedReason, UnusableCsv } from '../../cells/csv/malformed.ts';
import { type ExportAnswer, type ExportRefusal, UnreadableBody } from './protocol.ts';

/** A body that was received and checked to its last byte. */
export interface CheckedBody {
  readonly kind: 'checked';
  readonly scan: Omit<ScanResult, 'tail'>;
  /** Number of bytes received, and their SHA-256 (hex). */
  readonly bytes: number;
  readonly sha256: string;
}

/** Takes the checked bytes of one attempt: UTF-8, LF, without a BOM. */
export interface CheckedOutput {
  /** The bytes are valid until the promise settles. */
  write(bytes: Uint8Array): void | Promise<void>;
  /** Called once behind the last byte. */
  close?(): Promise<void>;
  /** Called instead if the body is not whole: nothing of the attempt counts. */
  discard?(): Promise<void>;
}

export interface Download extends Omit<Runtime, 'env'> {
  /** Names what is exported, in messages: `2026-01-17`, `profiles`. */
  readonly label: string;
  /** Sends the request once. */
  readonly send: (signal: AbortSignal) => Promise<ExportAnswer>;
  /** Begins an attempt. */
  readonly open: () => CheckedOutput | Promise<CheckedOutput>;
  readonly scan: ScannerOptions;
  /** Called with the number of bytes received, also of an attempt that fails. */
  readonly onBytes?: (count: number) => void;
}

const BACKOFF: Backoff = { attempts: 5, baseMs: 1_000, capMs: 120_000 };
/** The 429 after which an export fails. */
const MAX_QUOTA_REFUSALS = 50;
/** Answers that may mean "too large" before it is taken for that. */
const TOO_LARGE_AFTER = 3;
/** Faults that every download of the same export has. */
const FINAL: ReadonlySet<string> = new Set<MalformedReason>([
  'no_header',
  'missing_columns',
  'too_many_columns',
  'not_csv',
]);

/**
 * Sends an export, with pauses, until its answer is final. The message of a refusal is a sentence then, but for
 * `retry_or_split`: fewer events must be requested. `retry` and `wait` mean that all attempts failed. Throws what `open`
 * and its output throw, and UserErrors of the quota.
 */
export async function downloadChecked(download: Download): Promise<CheckedBody | ExportRefusal> {
  const { label, clock, random, logger, signal } = download;
  const faults = new Set<string>();
  let maybeTooLarge = 0;
  const attempt = async ({ number, pause }: Attempt): Promise<CheckedBody | ExportRefusal | undefined> => {
    const answer = await attemptWithinQuota(download);
    if (answer.kind === 'checked' || answer.emptyAs !== undefined) return answer;
    if (answer.kind !== 'retry' && answer.kind !== 'retry_or_split') return answer;
    if (isFinal(answer, faults)) {
      const message = `The export of ${label} is broken, and would be again: ${answer.message}. Nothing of it was stored.`;
      return { ...answer, kind: 'retry', message };
    }
    const { code: cause } = answer;
    // The user can search for the code.
    const why = answer.message.endsWith(')') ? answer.message : `${answer.message} (${cause})`;
    if (answer.kind === 'retry_or_split' && ++maybeTooLarge >= TOO_LARGE_AFTER) {
      logger.warn('export.given_up', `${label}, attempt ${number}: ${why} again and again.`, {
        attempt: number,
        cause,
      });
      return answer;
    }
    if (pause === undefined) {
      const message = `The export of ${label} failed ${number} times, at last because ${why}; nothing of it was stored, run again later.`;
      return { ...answer, kind: 'retry', message };
    }
    const message = `${label}, attempt ${number} of ${BACKOFF.attempts}: ${why}; again in ${formatDuration(pause)}.`;
    logger.warn('export.retry', message, { attempt: number, cause, pause_ms: pause });
    return undefined;
  };
  const answer = await retry({ pauses: jittered(BACKOFF, random), clock, signal }, attempt);
  if (answer === undefined) throw new Error('the last attempt gives an answer');
  return answer;
}

/** One attempt; a 429 does not count, since the quota delays the next request. */
async function attemptWithinQuota(download: Download): Promise<CheckedBody | ExportRefusal> {
  for (let refusals = 1; ; refusals++) {
    download.signal.throwIfAborted();
    const answer = await attemptOnce(download);
    if (answer.kind !== 'wait') return answer;
    if (refusals < MAX_QUOTA_REFUSALS) continue;
    return { ...answer, message: `${download.label}: ${answer.message} Asked ${refusals} times; run again later.` };
  }
}

/** Sends one request and checks its body. A body that is broken or has no byte is a refusal with status 200. */
async function attemptOnce({ send, open, signal, ...how }: Download): Promise<CheckedBody | ExportRefusal> {
  const answer = await send(signal);
  if (answer.kind !== 'data') return answer;
  try {
    const output = await open();
    try {
      const body = await checkBody(answer.bytes, output, { ...how, signal });
      await output.close?.();
      return body;
    } catch (error) {
      await output.discard?.();
      signal.throwIfAborted();
      return refusalFor(error);
    }
  } finally {
    await answer.close();
  }
}

/** Checks a body to its last byte. Throws MalformedCsv, UnusableCsv, and what its bytes and the output throw. */
export async function checkBody(
  body: AsyncIterable<Uint8Array>,
  output: Pick<CheckedOutput, 'write'>,
  { scan: options, onBytes, signal }: Pick<Download, 'scan' | 'onBytes' | 'signal'>,
): Promise<CheckedBody> {
  const scanner = new Scanner(options);
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of body) {
    signal.throwIfAborted();
    bytes += chunk.length;
    onBytes?.(chunk.length);
    hash.update(chunk);
    for (const part of scanner.push(chunk)) await output.write(part);
  }
  const { tail, ...scan } = scanner.finish();
  for (const part of tail) await output.write(part);
  return { kind: 'checked', scan, bytes, sha256: hash.digest('hex') };
}

function refusalFor(error: unknown): ExportRefusal {
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
  return isRepeated || FINAL.has(code);
}
