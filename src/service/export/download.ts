import { formatDuration, HOUR_MS } from '../../base/durations.ts';
import { configError } from '../../base/errors.ts';
import { plainCount } from '../../base/quantities.ts';
import { type Attempt, type Backoff, jitteredPauses, retry } from '../../base/retry.ts';
import type { RunContext, Runtime } from '../../base/runtime.ts';
import type { ScannerOptions } from '../../cells/columns/scanner.ts';
import { MalformedCsv, type MalformedReason, UnusableCsv } from '../../cells/csv/malformed.ts';
import { type CheckedBody, type CheckedOutput, checkBody } from './checked-body.ts';
import { refusalOfBody } from './outcomes.ts';
import { type ExportAnswer, type ExportRefusal, InterruptedBody } from './protocol.ts';

export interface DownloadRequest<Output extends CheckedOutput> extends RunContext {
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
  /**
   * What is counted, also of attempts that fail. An erasure has none. It reads no days, so its clocks are not compared.
   */
  readonly counts?: DownloadCounts;
}

export interface DownloadCounts {
  /** Number of exports that the service answered. */
  exports: number;
  /** Bytes of CSV received. */
  bytes: number;
  /** Number of answers whose clock differs from that of this machine: the first is warned of. */
  clockWarnings: number;
}

const BACKOFF: Backoff = { attempts: 5, baseMs: 1_000, capMs: 120_000 };
/** The 429 after which an export fails. */
const MAX_QUOTA_REFUSALS = 50;
/** Answers that may mean "too large" before it is taken for that. */
const TOO_LARGE_AFTER = 3;
/** The code of a body whose last line may be cut. */
const LAST_LINE = 'last_line';
/** Differences between the clocks (ms) from which a run warns, and from which it ends. */
const CLOCK_WARNING_MS = HOUR_MS;
const CLOCK_LIMIT_MS = 12 * HOUR_MS;
/** Faults that every download of the same export has. */
const REPEATED_FAULTS: ReadonlySet<string> = new Set<MalformedReason>([
  'no_header',
  'missing_columns',
  'too_many_columns',
  'not_csv',
]);

/**
 * Sends an export, with pauses, until its answer is final. Then `retry_or_split` means that fewer events must be
 * requested, and `retry` and `wait` that the next run may succeed. Throws what `open` and its output throw, and
 * UserErrors of the quota.
 */
export const downloadChecked = <Output extends CheckedOutput>(
  download: DownloadRequest<Output>,
): Promise<CheckedBody<Output> | ExportRefusal> => new Download(download).run();

/**
 * The attempts at one export.
 *
 *   what came                                       what is done
 *   a body whose last line is whole                 it is the result
 *   wait                                            asked again, the quota holds the request back; the 50th is the result
 *   a body that is broken as one before, or no CSV  fails
 *   retry_or_split                                  attempted again; the third is the result
 *   retry, a body that is broken or may be cut      attempted again; the fifth fails
 *   anything else, also what may be an empty day    it is the result
 */
class Download<Output extends CheckedOutput> {
  readonly #request: DownloadRequest<Output>;
  /** What came of the attempts so far. */
  readonly #refusals: ExportRefusal[] = [];
  /** Lengths of the bodies whose last line may be cut, in bytes. */
  readonly #cutLengths = new Set<number>();
  #waits = 0;

  constructor(request: DownloadRequest<Output>) {
    this.#request = request;
  }

  async run(): Promise<CheckedBody<Output> | ExportRefusal> {
    const { label, clock, random, signal } = this.#request;
    const policy = { pauses: jitteredPauses(BACKOFF, random), clock, signal };
    const result = await retry(policy, (attempt) => this.#attempt(attempt));
    if (result?.kind === 'checked') warnOfInvalidUtf8(result, this.#request);
    if (result !== undefined) return result;
    const last = this.#refusals[this.#refusals.length - 1];
    const clause = `the export of ${label} failed ${this.#refusals.length} times, at last because ${withCode(last)}; nothing of it was stored`;
    return { ...last, kind: 'retry', clause };
  }

  /** The result; undefined if another attempt may have a better one. */
  async #attempt({ number, pause }: Attempt): Promise<CheckedBody<Output> | ExportRefusal | undefined> {
    const { label, logger } = this.#request;
    const answer = await this.#askWithinQuota();
    if (answer.kind === 'checked' || !isRepeatable(answer)) return answer;
    const { code: cause, clause, where } = answer;
    const isSame = (before: ExportRefusal) => before.code === cause && before.where?.row === where?.row;
    if (where !== undefined && (REPEATED_FAULTS.has(cause) || this.#refusals.some(isSame))) {
      const broken = `the export of ${label} is broken, and would be again: ${clause}. Nothing of it was stored`;
      return { ...answer, kind: 'retry', clause: broken };
    }
    this.#refusals.push(answer);
    const maybeTooLarge = this.#refusals.filter(({ kind }) => kind === 'retry_or_split').length;
    if (answer.kind === 'retry_or_split' && maybeTooLarge >= TOO_LARGE_AFTER) return answer;
    if (pause === undefined) return undefined;
    const line = `${label}, attempt ${number} of ${BACKOFF.attempts}: ${withCode(answer)}; again in ${formatDuration(pause)}.`;
    // A service that never ends its files with a line end needs no warning each time.
    const level = cause === LAST_LINE && this.#cutLengths.size === 1 ? 'info' : 'warn';
    logger[level]('export.retry', line, { attempt: number, cause, pause_ms: pause });
    return undefined;
  }

  /** Asks until the limit of exports allows an answer. */
  async #askWithinQuota(): Promise<CheckedBody<Output> | ExportRefusal> {
    for (;;) {
      const answer = await sendOnce(this.#request);
      if (answer.kind === 'checked') return this.#withWholeEnd(answer);
      if (answer.kind !== 'wait') return answer;
      if (++this.#waits < MAX_QUOTA_REFUSALS) continue;
      const clause = `${this.#request.label}: ${answer.clause}. Asked ${this.#waits} times`;
      return { ...answer, clause };
    }
  }

  /**
   * The body, or a refusal if its last line may be cut. It is whole if it ends as usual, or if another download had as
   * many bytes. Rows may come in another order. Where rows may be added, it is whole if another one ended without a
   * line end.
   */
  async #withWholeEnd(body: CheckedBody<Output>): Promise<CheckedBody<Output> | ExportRefusal> {
    const { finalNewline = true, mayGrow = false } = this.#request;
    const isConfirmed = mayGrow ? this.#cutLengths.size > 0 : this.#cutLengths.has(body.bytes);
    if (body.scan.finalNewline === finalNewline || isConfirmed) return body;
    await body.output.discard?.();
    const isFirst = this.#cutLengths.size === 0;
    this.#cutLengths.add(body.bytes);
    const clause = isFirst ? 'its last line may be cut' : 'it is not complete: each download ends elsewhere';
    return { kind: 'retry', code: LAST_LINE, clause, status: 200 };
  }
}

const isRepeatable = ({ kind, emptyAs }: ExportRefusal): boolean =>
  emptyAs === undefined && (kind === 'retry' || kind === 'retry_or_split');

/** The clause of a refusal with its code, for which the user can search. */
const withCode = ({ code, clause }: ExportRefusal): string => (clause.endsWith(')') ? clause : `${clause} (${code})`);

/** Sends one request and checks its body. A body that is broken or has no byte is a refusal with status 200. */
async function sendOnce<Output extends CheckedOutput>(
  download: DownloadRequest<Output>,
): Promise<CheckedBody<Output> | ExportRefusal> {
  const { send, open, signal, counts } = download;
  signal.throwIfAborted();
  const answer = await send(signal);
  try {
    if (counts !== undefined) {
      if (answer.kind === 'data' || answer.status !== undefined) counts.exports++;
      if (answer.serverTime !== undefined) checkClock(answer.serverTime, counts, download);
    }
    if (answer.kind !== 'data') return answer;
    const output = await open();
    return await checkBody(answer.bytes, output, download).catch((error: unknown) => {
      signal.throwIfAborted();
      return refusalOf(error);
    });
  } finally {
    if (answer.kind === 'data') await answer.close();
  }
}

/**
 * Compares the service's clock (ms) with that of this machine. Warns of the first difference of more than an hour. Above
 * twelve hours the wrong days would be read: throws a configuration failure.
 */
function checkClock(
  serverTime: number,
  counts: { clockWarnings: number },
  { clock, logger }: Pick<Runtime, 'clock' | 'logger'>,
): void {
  const now = clock.now();
  const apart = Math.abs(now - serverTime);
  if (apart <= CLOCK_WARNING_MS) return;
  const [here, there] = [now, serverTime].map((time) => new Date(time).toISOString());
  const message = `The clock of this machine (${here}) and that of the service (${there}) are ${formatDuration(apart)} apart`;
  if (apart > CLOCK_LIMIT_MS) throw configError(`${message}: set this clock right, nothing was stored with it.`);
  if (counts.clockWarnings++ === 0) logger.warn('clock.apart', `${message}.`);
}

function warnOfInvalidUtf8(
  { scan }: CheckedBody,
  { label, logger }: Pick<DownloadRequest<CheckedOutput>, 'label' | 'logger'>,
): void {
  const { cells, first } = scan.invalidUtf8;
  if (first === undefined) return;
  const message =
    `${label}: bytes that are not valid UTF-8 are kept as U+FFFD, in ${plainCount(cells, 'cell')}, ` +
    `first in row ${first.row}, column ${first.column}.`;
  logger.warn('export.invalid_utf8', message, { cells, ...first });
}

function refusalOf(error: unknown): ExportRefusal {
  const status = 200;
  if (error instanceof MalformedCsv) {
    const { reason: code, where, expected, found } = error;
    if (code === 'empty_body')
      return { kind: 'retry', code, clause: 'its body has no byte', status, emptyAs: 'no byte' };
    const clause = `row ${where.row} (byte ${where.byte}) of the body is broken: expected ${expected}, found ${found}`;
    return { kind: 'retry', code, clause, status, where };
  }
  if (error instanceof UnusableCsv) {
    const clause = `the export has ${error.fault}: nothing of it was used, and it would be the same again`;
    return { kind: 'unsupported', code: 'not_csv', clause, status };
  }
  if (error instanceof InterruptedBody) return refusalOfBody(error.fault, error.clause, status);
  throw error;
}
