import { isDay } from '../../base/days.ts';
import { configError, transientError, type UserError } from '../../base/errors.ts';
import { formatDuration, plainCount } from '../../base/quantities.ts';
import { type Backoff, jitteredPauses, retry } from '../../base/retry.ts';
import type { Runtime } from '../../base/runtime.ts';
import { sentenceOf } from '../../base/text.ts';
import type { ScannerOptions } from '../../cells/columns/export-scanner.ts';
import { MalformedCsv, UnusableCsv } from '../../cells/csv/malformed.ts';
import { type BodyOutput, type CheckedBody, checkBody } from './checked-body.ts';
import {
  type ExportRequest,
  type ExportService,
  InterruptedExport,
  type NoData,
  type NoDownload,
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

/** What all attempts at one export came to. */
export type DownloadResult<Output extends BodyOutput> = (CheckedBody<Output> | NoDownload) & {
  /** Number of requests that were sent. */
  readonly exports: number;
};

/** The pauses come to half a minute as a rule: a service that restarts is back. A day is divided after two pauses. */
const BACKOFF: Backoff = { attempts: 5, firstPauseMs: 5_000, maxPauseMs: 30_000 };
/** The refusal for the quota after which an export fails, whatever its attempt. */
const MAX_QUOTA_REFUSALS = 50;
/** Attempts whose answer may mean "too large", after which it is taken for that. */
const SPLIT_AFTER_ATTEMPTS = 3;

/** Sends an export until its answer is final. Throws what its output throws, and UserErrors of the quota. */
export const downloadChecked = <Output extends BodyOutput>(
  options: DownloadOptions<Output>,
): Promise<DownloadResult<Output>> => new Download(options).run();

/**
 * The attempts at one export. `NoData` says how often each kind is attempted. Besides, a body that is broken as one before
 * fails at once, and a body whose last line may be cut is downloaded again.
 */
class Download<Output extends BodyOutput> {
  readonly #options: DownloadOptions<Output>;
  readonly #failedAttempts: NoData[] = [];
  /** Number of requests that were sent, and of those that were refused for the quota. */
  #exports = 0;
  #quotaRefusals = 0;
  /** Lengths of the bodies whose last line may be cut, in bytes. */
  readonly #suspectLengths = new Set<number>();

  constructor(options: DownloadOptions<Output>) {
    this.#options = options;
  }

  async run(): Promise<DownloadResult<Output>> {
    const { label, clock, random, signal } = this.#options;
    const policy = { pauses: jitteredPauses(BACKOFF, random), clock, signal };
    const bodyOrNoDownload = await retry(policy, ({ pause }) => this.#attempt(pause));
    if (bodyOrNoDownload !== undefined) return { ...bodyOrNoDownload, exports: this.#exports };
    const lastNoData = this.#failedAttempts[this.#failedAttempts.length - 1];
    const statement = `the export of ${label} failed ${BACKOFF.attempts} times`;
    const clause = `${statement}, at last because ${withCode(lastNoData)}; nothing of it was stored`;
    return { ...forLaterRun(lastNoData, clause), exports: this.#exports };
  }

  /** The result, or undefined if it is to be attempted again, after `pause` (ms); the last attempt has none. */
  async #attempt(pause: number | undefined): Promise<CheckedBody<Output> | NoDownload | undefined> {
    let bodyOrNoData = await this.#sendOnce();
    // A refusal for the quota is no attempt.
    while (bodyOrNoData.kind === 'wait' && ++this.#quotaRefusals < MAX_QUOTA_REFUSALS)
      bodyOrNoData = await this.#sendOnce();
    switch (bodyOrNoData.kind) {
      case 'checked':
        this.#warnOfInvalidUtf8(bodyOrNoData);
        return bodyOrNoData;
      case 'wait': {
        const clause = `${this.#options.label}: ${bodyOrNoData.clause}, for the ${MAX_QUOTA_REFUSALS}th time`;
        return forLaterRun(bodyOrNoData, clause);
      }
      case 'retry':
      case 'retry_or_split':
        return this.#failAttempt(bodyOrNoData, pause);
      default:
        // The compiler narrows the kind alone.
        return { ...bodyOrNoData, kind: bodyOrNoData.kind };
    }
  }

  /** The failure of the download if another attempt would fail as well; undefined if it may succeed. */
  #failAttempt(noData: NoData, pause: number | undefined): NoDownload | undefined {
    const { label, logger } = this.#options;
    const { kind, code, clause, where } = noData;
    const brokeEqually = (earlier: NoData) => earlier.code === code && earlier.where?.row === where?.row;
    const isBrokenAgain = where !== undefined && this.#failedAttempts.some(brokeEqually);
    const attempt = this.#failedAttempts.push(noData);
    if (isBrokenAgain) {
      const statement = `the export of ${label} is broken twice in the same way`;
      return forLaterRun(noData, `${statement}: ${clause}. Nothing of it was stored`);
    }
    const splitAttempts = this.#failedAttempts.filter((earlier) => earlier.kind === 'retry_or_split');
    if (kind === 'retry_or_split' && splitAttempts.length >= SPLIT_AFTER_ATTEMPTS)
      return { ...noData, kind: 'too_large' };
    if (pause !== undefined) {
      const why = `${label}, attempt ${attempt} of ${BACKOFF.attempts}: ${withCode(noData)}`;
      const fields = { attempt, cause: code, pause_ms: pause };
      logger.warn('export.retry', `${why}; again in ${formatDuration(pause)}.`, fields);
    }
    return undefined;
  }

  #warnOfInvalidUtf8({ scan }: CheckedBody): void {
    const { label, logger } = this.#options;
    const { cells, first } = scan.invalidUtf8;
    if (first === undefined) return;
    const message =
      `${label}: bytes that are not valid UTF-8 are kept as U+FFFD, in ${plainCount(cells, 'cell')}, ` +
      `first in row ${first.row}, column ${first.column}.`;
    logger.warn('export.invalid_utf8', message, { cells, ...first });
  }

  /** Sends the request once and checks its body. A body that is broken gives no data, as does no answer. */
  async #sendOnce(): Promise<CheckedBody<Output> | NoData> {
    const { service, request, openOutput, signal } = this.#options;
    signal.throwIfAborted();
    this.#exports++;
    try {
      return await service.export(request, signal, async (answer) =>
        answer.kind === 'data'
          ? this.#checkLastLine(await checkBody(answer.stream, await openOutput(), this.#options))
          : answer,
      );
    } catch (error) {
      signal.throwIfAborted();
      return noDataOf(error);
    }
  }

  /**
   * The body, or no data if its last line may be cut, since it does not end as the files of this service do. Another
   * download that ends so confirms it: one of the same length, or any where rows may be added. Rows may come in another
   * order.
   */
  async #checkLastLine(body: CheckedBody<Output>): Promise<CheckedBody<Output> | NoData> {
    const { expectsFinalNewline = true, rowsMayChange = false } = this.#options;
    const { hasFinalNewline, rows } = body.scan;
    // A header alone may have a line end where the last row has none.
    const endsAsUsual = hasFinalNewline === expectsFinalNewline || (hasFinalNewline && rows === 0);
    const isFirst = this.#suspectLengths.size === 0;
    const isConfirmed = rowsMayChange ? !isFirst : this.#suspectLengths.has(body.bytes);
    if (endsAsUsual || isConfirmed) return body;
    await body.output.discard?.();
    this.#suspectLengths.add(body.bytes);
    const clause = isFirst ? 'its last line may be cut' : 'it is not complete: each download ends elsewhere';
    return { kind: 'retry', code: 'last_line', clause };
  }
}

/** The clause with its code, to search for. */
const withCode = ({ clause, code }: NoData): string => (clause.endsWith(')') ? clause : `${clause} (${code})`);

const forLaterRun = (noData: NoData, clause: string): NoDownload => ({ ...noData, kind: 'later', clause });

/** Why an export gave no body that could be checked to its end. Throws any other error. */
function noDataOf(error: unknown): NoData {
  if (error instanceof MalformedCsv) {
    const { reason: code, where, clause } = error;
    return { kind: 'retry', code, clause, where };
  }
  if (error instanceof UnusableCsv) {
    const clause = `the export has ${error.mismatch}: nothing of it was used, and it would be the same again`;
    return { kind: 'unsupported', code: 'not_csv', clause };
  }
  if (error instanceof InterruptedExport) return error.noData;
  throw error;
}

/** The failure for a user; `label` names what was exported, a day or several. */
export function downloadError(label: string, { kind, code, clause, where }: NoDownload): UserError {
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
