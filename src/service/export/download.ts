import { isDay } from '../../base/days.ts';
import { configError, transientError, type UserError } from '../../base/errors.ts';
import { formatDuration, unseparatedCount } from '../../base/quantities.ts';
import { type Backoff, jitteredPauses } from '../../base/retry.ts';
import type { Runtime } from '../../base/runtime.ts';
import { sentenceOf } from '../../base/text.ts';
import type { ScannerOptions } from '../../cells/columns/export-scanner.ts';
import { MalformedCsv, UnusableCsv } from '../../cells/csv/malformed.ts';
import { type BodyOutput, type CheckedBody, checkBody } from './checked-body.ts';
import {
  type DownloadFailure,
  type ExportRequest,
  type ExportService,
  InterruptedExport,
  type RequestFailure,
} from './export-service.ts';

export interface DownloadOptions<Output extends BodyOutput> extends Omit<Runtime, 'env'> {
  readonly service: ExportService;
  readonly request: ExportRequest;
  /** Names what is exported, in messages: `2026-01-17`, `profiles`. */
  readonly label: string;
  readonly openOutput: () => Output | Promise<Output>;
  readonly scannerOptions: ScannerOptions;
  /** Whether the service ends its files with a line end, as far as that is known; default true. */
  readonly expectsFinalNewline?: boolean | undefined;
  /** True if its rows may change between two downloads, as those of an open day and of profiles do. Default false. */
  readonly rowsMayChange?: boolean;
}

/** What all requests for one export came to. */
export type DownloadResult<Output extends BodyOutput> = (CheckedBody<Output> | DownloadFailure) & {
  /** Number of requests that were sent. */
  readonly exportCount: number;
};

/** The pauses come to half a minute as a rule: a service that restarts is back. A day is divided after two pauses. */
const BACKOFF: Backoff = { attempts: 5, firstPauseMs: 5_000, maxPauseMs: 30_000 };
/** The refusal for the quota after which an export fails. */
const MAX_QUOTA_REFUSALS = 50;
/** Attempts whose answer may mean "too large", after which it is taken for that. */
const SPLIT_AFTER_ATTEMPTS = 3;

/** Sends an export until its answer is final. Throws what its output throws, and UserErrors of the quota. */
export async function downloadChecked<Output extends BodyOutput>(
  options: DownloadOptions<Output>,
): Promise<DownloadResult<Output>> {
  const { label, clock, random, signal, logger } = options;
  const pauses = [...jitteredPauses(BACKOFF, random)];
  const failures: RequestFailure[] = [];
  const suspectLengths = new Set<number>();
  for (let exportCount = 1; ; exportCount++) {
    const bodyOrFailure = await sendOnce(options, suspectLengths);
    if (bodyOrFailure.kind === 'checked') {
      warnOfInvalidUtf8(bodyOrFailure, options);
      return { ...bodyOrFailure, exportCount };
    }
    const next = afterFailure(bodyOrFailure, failures, label);
    if (next.kind === 'stop') return { ...next.failure, exportCount };
    failures.push(bodyOrFailure);
    if (next.kind === 'send') continue;
    const { attempt } = next;
    const pause = pauses[attempt - 1];
    const why = `${label}, attempt ${attempt} of ${BACKOFF.attempts}: ${withCode(bodyOrFailure)}`;
    const fields = { attempt, cause: bodyOrFailure.code, pause_ms: pause };
    logger.warn('export.retry', `${why}; again in ${formatDuration(pause)}.`, fields);
    await clock.sleep(pause, signal);
  }
}

/** Sends the request once and checks its body. A body that is broken gives no data, as does no answer. */
async function sendOnce<Output extends BodyOutput>(
  options: DownloadOptions<Output>,
  suspectLengths: Set<number>,
): Promise<CheckedBody<Output> | RequestFailure> {
  const { service, request, openOutput, signal } = options;
  signal.throwIfAborted();
  try {
    return await service.export(request, signal, async (answer) => {
      if (answer.kind !== 'data') return answer;
      const body = await checkBody(answer.stream, await openOutput(), options);
      const failure = lastLineFailure(body, options, suspectLengths);
      if (failure !== undefined) await body.output.discard?.();
      return failure ?? body;
    });
  } catch (error) {
    signal.throwIfAborted();
    return failureOf(error);
  }
}

/**
 * A failure if the last line of a body may be cut, since it does not end as the files of this service do. Another
 * download that ends so confirms it: one of the same length, or any where rows may be added. Rows may come in another
 * order. `suspectLengths`: those of such bodies of this download, in bytes.
 */
function lastLineFailure(
  { scan, bytes }: CheckedBody,
  { expectsFinalNewline = true, rowsMayChange = false }: DownloadOptions<BodyOutput>,
  suspectLengths: Set<number>,
): RequestFailure | undefined {
  const { hasFinalNewline, rows } = scan;
  // A header alone may have a line end where the last row has none.
  const endsAsUsual = hasFinalNewline === expectsFinalNewline || (hasFinalNewline && rows === 0);
  const isFirst = suspectLengths.size === 0;
  const isConfirmed = rowsMayChange ? !isFirst : suspectLengths.has(bytes);
  if (endsAsUsual || isConfirmed) return undefined;
  suspectLengths.add(bytes);
  const clause = isFirst ? 'its last line may be cut' : 'it is not complete: each download ends elsewhere';
  return { kind: 'retry', code: 'last_line', clause };
}

function warnOfInvalidUtf8({ scan }: CheckedBody, { label, logger }: DownloadOptions<BodyOutput>): void {
  const { cells, first } = scan.invalidUtf8;
  if (first === undefined) return;
  const message =
    `${label}: bytes that are not valid UTF-8 are kept as U+FFFD, in ${unseparatedCount(cells, 'cell')}, ` +
    `first in row ${first.row}, column ${first.column}.`;
  logger.warn('export.invalid_utf8', message, { cells, ...first });
}

/** `send`: the quota holds the next request back. `pause`: after an attempt, counted from 1. */
type NextStep =
  | { readonly kind: 'send' }
  | { readonly kind: 'pause'; readonly attempt: number }
  | { readonly kind: 'stop'; readonly failure: DownloadFailure };

/** What follows a request that failed, behind earlier ones of the same download. A refusal for the quota is no attempt. */
function afterFailure(failure: RequestFailure, earlier: readonly RequestFailure[], label: string): NextStep {
  const { kind, code, clause, where } = failure;
  const count = (...kinds: readonly RequestFailure['kind'][]) =>
    1 + earlier.filter((before) => kinds.includes(before.kind)).length;
  const giveUp = (why: string): NextStep => ({ kind: 'stop', failure: { ...failure, kind: 'later', clause: why } });
  if (kind === 'wait') {
    const isLast = count('wait') >= MAX_QUOTA_REFUSALS;
    return isLast ? giveUp(`${label}: ${clause}, for the ${MAX_QUOTA_REFUSALS}th time`) : { kind: 'send' };
  }
  // The compiler narrows the kind alone.
  if (kind !== 'retry' && kind !== 'retry_or_split') return { kind: 'stop', failure: { ...failure, kind } };
  // A body that is broken as one before would be so again.
  if (where !== undefined && earlier.some((before) => before.code === code && before.where?.row === where.row))
    return giveUp(`the export of ${label} is broken twice in the same way: ${clause}. Nothing of it was stored`);
  if (kind === 'retry_or_split' && count('retry_or_split') >= SPLIT_AFTER_ATTEMPTS)
    return { kind: 'stop', failure: { ...failure, kind: 'too_large' } };
  const attempt = count('retry', 'retry_or_split');
  if (attempt < BACKOFF.attempts) return { kind: 'pause', attempt };
  const statement = `the export of ${label} failed ${BACKOFF.attempts} times`;
  return giveUp(`${statement}, at last because ${withCode(failure)}; nothing of it was stored`);
}

/** The clause with its code, to search for. */
const withCode = ({ clause, code }: RequestFailure): string => (clause.endsWith(')') ? clause : `${clause} (${code})`);

/** Why an export gave no body that could be checked to its end. Throws any other error. */
function failureOf(error: unknown): RequestFailure {
  if (error instanceof MalformedCsv) {
    const { reason: code, where, clause } = error;
    return { kind: 'retry', code, clause, where };
  }
  if (error instanceof UnusableCsv) {
    const clause = `the export has ${error.mismatch}: nothing of it was used, and it would be the same again`;
    return { kind: 'unsupported', code: 'not_csv', clause };
  }
  if (error instanceof InterruptedExport) return error.failure;
  throw error;
}

/** The failure for a user; `label` names what was exported, a day or several. */
export function downloadError(label: string, { kind, code, clause, where }: DownloadFailure): UserError {
  const details = { where: { ...where, ...(isDay(label) && { day: label }) }, detail: code };
  switch (kind) {
    case 'empty':
      return transientError(`For ${label} ${clause}.`, details);
    case 'later':
      return transientError(`${sentenceOf(clause)} Run again later.`, details);
    case 'too_large':
      return transientError(`The service does not export ${label}: ${clause}. Run again later.`, details);
    default:
      return configError(`The service does not export ${label}: ${sentenceOf(clause)}`, details);
  }
}
