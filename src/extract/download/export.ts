import { unlink } from 'node:fs/promises';
import { formatDuration } from '../../base/durations.ts';
import { configError, transientError, type UserError } from '../../base/errors.ts';
import { pauseAfter, type RetryPolicy } from '../../base/retry.ts';
import type { MalformedCsv, MalformedReason } from '../../cells/csv/malformed.ts';
import type { ExportRequest } from '../../service/export/protocol.ts';
import { attemptExport, type EmptyAnswer, type ExportFile, type Refusal } from './attempt.ts';
import type { Run } from './run.ts';

/**
 * The last answer to a request. `gone`: the service no longer has the first day. `invalid`: a 400, perhaps for a day
 * that has not begun. `too_big`: it failed so often that fewer events must be requested. `failed`: it was refused, or
 * all attempts failed.
 */
export type Exported =
  | ExportFile
  | EmptyAnswer
  | (Omit<Refusal, 'kind'> & { readonly kind: 'gone' | 'invalid' | 'too_big' })
  | { readonly kind: 'failed'; readonly error: UserError };

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

const RETRY: RetryPolicy = { attempts: 5, baseMs: 1_000, capMs: 120_000 };
/** The 429 of one export at which the day fails. */
const MAX_QUOTA_REFUSALS = 50;
/** Answers that may mean "too large" before it is taken for that. */
const TOO_LARGE_AFTER = 3;
/** Faults that every download of the same export has. */
const FINAL: ReadonlySet<MalformedReason> = new Set(['no_header', 'missing_columns', 'too_many_columns', 'not_csv']);

/**
 * Sends an export until its answer is final. A file whose last line may be cut is downloaded once more (rule *Last
 * line*). Throws what is no answer of the service: a failure of the quota or of the disk.
 */
export async function fetchExport(run: Run, request: DayRequest): Promise<Exported> {
  const first = await fetchOnce(run, request);
  if (first.kind !== 'file') return first;
  const { facts } = run;
  const endsAsUsual = first.scan.finalNewline === (facts.finalNewline ?? true);
  if (endsAsUsual) {
    facts.finalNewline = first.scan.finalNewline;
    facts.recordExported(first.scan.eventNames);
    return first;
  }
  const message = first.scan.finalNewline
    ? `${request.from} ends with a line end, unlike the days before; it is downloaded once more.`
    : `${request.from}: the last line may be cut; the day is downloaded once more.`;
  run.deps.logger.info('day.last_line', message, { day: request.from });
  await discard(first);
  const second = await fetchOnce(run, request);
  if (second.kind !== 'file') return second;
  // Two files that end in the same way show how this service ends its files.
  if (second.scan.finalNewline === first.scan.finalNewline) facts.finalNewline = second.scan.finalNewline;
  facts.recordExported(second.scan.eventNames);
  return second;
}

/** Repeats a request with pauses. */
async function fetchOnce(run: Run, request: DayRequest): Promise<Exported> {
  const { clock, random, logger } = run.deps;
  const day = request.from;
  const broken = new Set<string>();
  let attempt = 1;
  let quotaRefusals = 0;
  let maybeTooBig = 0;
  for (;;) {
    run.signal.throwIfAborted();
    request.effort.exports++;
    const answer = await attemptExport(run, request);
    if (answer.kind === 'file' || answer.kind === 'empty') return answer;
    const { kind, code, message, malformed } = answer;
    const failed = (text: string, of = transientError): Exported => {
      const where = { ...malformed?.where, day, attempt };
      return { kind: 'failed', error: of(text, { where, internal: code }) };
    };
    if (kind === 'gone' || kind === 'invalid') return { ...answer, kind };
    if (kind === 'config') return failed(message, configError);
    if (kind === 'wait') {
      // No attempt: the quota has recorded the refusal and delays the next request.
      if (++quotaRefusals < MAX_QUOTA_REFUSALS) continue;
      return failed(`${day}: ${message} Asked ${quotaRefusals} times; run again later.`);
    }
    if (malformed !== undefined && isFinal(malformed, broken)) {
      return failed(`The export of ${day} is broken, and would be again: ${message}. Nothing of it was stored.`);
    }
    // The user can search for the code.
    const why = message.endsWith(')') ? message : `${message} (${code})`;
    if (kind === 'retry_or_split' && ++maybeTooBig >= TOO_LARGE_AFTER) {
      const text = `${day}, attempt ${attempt}: ${why} again and again.`;
      logger.warn('export.given_up', text, { day, attempt, cause: code });
      return { ...answer, kind: 'too_big' };
    }
    if (attempt >= RETRY.attempts) {
      const times = `failed ${attempt} times, at last because ${why}`;
      return failed(`The export of ${day} ${times}; nothing of it was stored, run again later.`);
    }
    const pause = pauseAfter(attempt, RETRY, random);
    const text = `${day}, attempt ${attempt} of ${RETRY.attempts}: ${why}; again in ${formatDuration(pause)}.`;
    logger.warn('export.retry', text, { day, attempt, cause: code, pause_ms: pause });
    await clock.sleep(pause, run.signal);
    attempt++;
  }
}

/** True if another download is of no use: an earlier one was broken at the same place in the same way. */
function isFinal({ reason, where }: MalformedCsv, earlier: Set<string>): boolean {
  const how = `${reason} ${where.row}`;
  const isKnown = earlier.has(how);
  earlier.add(how);
  return isKnown || FINAL.has(reason);
}

/** Number of rows that the service sent, also those that were left out for the suppression list. */
export const rowCount = (files: readonly ExportFile[]): number =>
  files.reduce((sum, { scan }) => sum + scan.rows + scan.suppressed, 0);

/** Removes the file of an answer, if it has one. */
export async function discard(...answers: readonly Exported[]): Promise<void> {
  for (const answer of answers) if (answer.kind === 'file') await unlink(answer.path).catch(() => {});
}
