import { unlink } from 'node:fs/promises';
import { transientError, UserError } from '../../base/errors.ts';
import { MalformedCsv, type MalformedReason, UnusableCsv } from '../../cells/csv/malformed.ts';
import type { ExportRequest } from '../../service/export/protocol.ts';
import {
  type LastRefusal,
  newWaitBudget,
  type Refusal,
  retrying,
  type WaitBudget,
} from '../../service/export/retry.ts';
import { attemptExport, type EmptyAnswer, type ExportFile } from './attempt.ts';
import type { Run } from './run.ts';

/** The last answer to a request. `failed`: it was refused, or all attempts failed. */
export type Exported = ExportFile | EmptyAnswer | LastRefusal | { readonly kind: 'failed'; readonly error: UserError };

/** The export of one day, with what was spent for it. */
export interface DayRequest extends ExportRequest {
  readonly effort: DayEffort;
}

/** What the exports of one day have in common. */
export interface DayEffort {
  /** Requests that were sent. */
  exports: number;
  readonly waitBudget: WaitBudget;
}

export const newEffort = (): DayEffort => ({ exports: 0, waitBudget: newWaitBudget() });

/** Bodies malformed at the same place in the same way before the day fails. */
const MAX_MALFORMED = 2;
/** Faults that every download of the same export has. */
const FINAL: ReadonlySet<MalformedReason> = new Set(['no_header', 'missing_columns', 'too_many_columns', 'not_csv']);

/**
 * Sends an export until its answer is final. A file whose last line may be cut is downloaded once more (rule *Last
 * line*). Throws what is no answer of the service: a failure of the quota or of the disk.
 */
export async function fetchExport(run: Run, request: DayRequest, splitAfter?: number): Promise<Exported> {
  const first = await fetchOnce(run, request, splitAfter);
  if (first.kind !== 'file') return first;
  const { facts } = run;
  const endsAsUsual = first.scan.finalNewline === (facts.finalNewline ?? true);
  if (endsAsUsual) {
    facts.finalNewline = first.scan.finalNewline;
    facts.recordExported(first.scan.eventNames);
    return first;
  }
  const message = `${request.from}: the last line may be cut; the day is downloaded once more.`;
  run.deps.logger.info('day.last_line', message, { day: request.from });
  await discard(first);
  const second = await fetchOnce(run, request, splitAfter);
  if (second.kind !== 'file') return second;
  // Two files that end in the same way show how this service ends its files.
  if (second.scan.finalNewline === first.scan.finalNewline) facts.finalNewline = second.scan.finalNewline;
  facts.recordExported(second.scan.eventNames);
  return second;
}

async function fetchOnce(run: Run, request: DayRequest, splitAfter?: number): Promise<Exported> {
  const malformed = new Map<string, number>();
  /** A failure that is no answer of the service. */
  let ours: unknown;
  const attempt = async () => {
    let answer: ExportFile | EmptyAnswer | Refusal;
    try {
      answer = await run.limit(() => {
        request.effort.exports++;
        return attemptExport(run, request);
      });
    } catch (error) {
      if (error instanceof MalformedCsv) return refusalOf(error, malformed, request.from);
      if (!(error instanceof UnusableCsv)) ours = error;
      throw error;
    }
    return answer.kind === 'file' || answer.kind === 'empty' ? { kind: 'received' as const, value: answer } : answer;
  };
  try {
    const { waitBudget } = request.effort;
    const options = { ...run.deps, day: request.from, splitAfter, waitBudget, signal: run.signal };
    const last = await retrying(options, attempt);
    return last.kind === 'received' ? last.value : last;
  } catch (error) {
    run.signal.throwIfAborted();
    if (error === ours || !(error instanceof UserError)) throw error;
    return { kind: 'failed', error };
  }
}

/** Makes a refusal of a malformed body. Throws if another download is of no use. */
function refusalOf(error: MalformedCsv, counts: Map<string, number>, day: string): Refusal {
  const { reason, where, expected, found } = error;
  const message = `row ${where.row} (byte ${where.byte}) of the body is broken: expected ${expected}, found ${found}`;
  const how = `${reason} ${where.row}`;
  const count = (counts.get(how) ?? 0) + 1;
  counts.set(how, count);
  if (count < MAX_MALFORMED && !FINAL.has(reason)) return { kind: 'retry', code: reason, message };
  const times = count > 1 ? `${count} times in the same way` : 'in a way that another download does not mend';
  throw transientError(`The export of ${day} was broken ${times}: ${message}. Nothing of it was stored.`, {
    where: { ...where, day },
    internal: reason,
  });
}

/** Number of rows that the service sent, also those that were left out for the suppression list. */
export const rowCount = (files: readonly ExportFile[]): number =>
  files.reduce((sum, { scan }) => sum + scan.rows + scan.suppressed, 0);

/** Removes the file of an answer, if it has one. */
export async function discard(...answers: readonly Exported[]): Promise<void> {
  for (const answer of answers) if (answer.kind === 'file') await unlink(answer.path).catch(() => {});
}
