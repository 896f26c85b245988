import { unlink } from 'node:fs/promises';
import { formatDuration } from '../../base/durations.ts';
import { type Attempt, type Backoff, jittered, retry } from '../../base/retry.ts';
import type { MalformedReason } from '../../cells/csv/malformed.ts';
import type { ExportRefusal, ExportRequest } from '../../service/export/protocol.ts';
import { attemptExport, type ExportFile, type ExportResult } from './attempt.ts';
import type { Run } from './run.ts';

/** The export of one day, with what was spent for it. */
export interface DayRequest extends ExportRequest {
  readonly effort: DayEffort;
}

/** What the exports of one day have in common. */
export interface DayEffort {
  /** Requests that were sent. */
  exports: number;
}

export const newEffort = (): DayEffort => ({ exports: 0 });

const BACKOFF: Backoff = { attempts: 5, baseMs: 1_000, capMs: 120_000 };
/** The 429 of one export at which the day fails. */
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
 * Sends an export until its answer is final. A refusal is a sentence then: `retry` and `wait` mean that all attempts
 * failed, `retry_or_split` that fewer events must be requested. A file whose last line may be cut is downloaded once
 * more. Throws what is no answer of the service: a failure of the quota, of the clocks or of the disk.
 */
export async function fetchExport(run: Run, request: DayRequest): Promise<ExportResult> {
  const first = await repeatExport(run, request);
  if (first.kind !== 'file') return first;
  const endsAsUsual = first.scan.finalNewline === (run.finalNewline ?? true);
  if (endsAsUsual) return accepted(run, first);
  const message = first.scan.finalNewline
    ? `${request.from} ends with a line end, unlike the days before; it is downloaded once more.`
    : `${request.from}: the last line may be cut; the day is downloaded once more.`;
  run.deps.logger.info('day.last_line', message, { day: request.from });
  await discard(first);
  const second = await repeatExport(run, request);
  if (second.kind !== 'file') return second;
  // Two files that end in the same way show how this service ends its files.
  const isSame = second.scan.finalNewline === first.scan.finalNewline;
  return accepted(run, second, isSame ? second.scan.finalNewline : run.finalNewline);
}

function accepted(run: Run, file: ExportFile, finalNewline: boolean | undefined = file.scan.finalNewline): ExportFile {
  run.finalNewline = finalNewline;
  run.recordExported(file.scan.eventNames);
  return file;
}

/** Repeats a request with pauses. */
async function repeatExport(run: Run, request: DayRequest): Promise<ExportResult> {
  const { clock, random, logger } = run.deps;
  const day = request.from;
  const faults = new Set<string>();
  let maybeTooLarge = 0;
  const attempt = async ({ number, pause }: Attempt): Promise<ExportResult | undefined> => {
    const answer = await attemptWithinQuota(run, request);
    const isRetried = answer.kind === 'retry' || answer.kind === 'retry_or_split';
    if (answer.kind === 'file' || !isRetried || answer.emptyAs !== undefined) return answer;
    if (isFinal(answer, faults)) {
      const message = `The export of ${day} is broken, and would be again: ${answer.message}. Nothing of it was stored.`;
      return { ...answer, kind: 'retry', message };
    }
    const { code } = answer;
    // The user can search for the code.
    const why = answer.message.endsWith(')') ? answer.message : `${answer.message} (${code})`;
    if (answer.kind === 'retry_or_split' && ++maybeTooLarge >= TOO_LARGE_AFTER) {
      const message = `${day}, attempt ${number}: ${why} again and again.`;
      logger.warn('export.given_up', message, { day, attempt: number, cause: code });
      return answer;
    }
    if (pause === undefined) {
      const message = `The export of ${day} failed ${number} times, at last because ${why}; nothing of it was stored, run again later.`;
      return { ...answer, kind: 'retry', message };
    }
    const message = `${day}, attempt ${number} of ${BACKOFF.attempts}: ${why}; again in ${formatDuration(pause)}.`;
    logger.warn('export.retry', message, { day, attempt: number, cause: code, pause_ms: pause });
    return undefined;
  };
  const answer = await retry({ pauses: jittered(BACKOFF, random), clock, signal: run.signal }, attempt);
  if (answer === undefined) throw new Error('the last attempt gives an answer');
  return answer;
}

/** One attempt; a 429 does not count, since the quota delays the next request. */
async function attemptWithinQuota(run: Run, request: DayRequest): Promise<ExportResult> {
  for (let refusals = 1; ; refusals++) {
    run.signal.throwIfAborted();
    request.effort.exports++;
    const answer = await attemptExport(run, request);
    if (answer.kind !== 'wait') return answer;
    if (refusals < MAX_QUOTA_REFUSALS) continue;
    const message = `${request.from}: ${answer.message} Asked ${refusals} times; run again later.`;
    return { ...answer, message };
  }
}

/** True if another download is of no use: an earlier one was broken at the same place in the same way. */
function isFinal({ code, where }: ExportRefusal, faults: Set<string>): boolean {
  if (where === undefined) return false;
  const fault = `${code} ${where.row}`;
  const isRepeated = faults.has(fault);
  faults.add(fault);
  return isRepeated || FINAL.has(code);
}

/** Number of rows that the service sent, also those that were left out for the suppression list. */
export const rowCount = (files: readonly ExportFile[]): number =>
  files.reduce((sum, { scan }) => sum + scan.rows + scan.suppressed, 0);

/** Removes the files of answers. */
export async function discard(...answers: readonly ExportResult[]): Promise<void> {
  for (const answer of answers) if (answer.kind === 'file') await unlink(answer.path).catch(() => {});
}
