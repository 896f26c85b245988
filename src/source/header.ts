import type { Clock } from '../base/clock.ts';
import { addDays } from '../base/days.ts';
import { configFailure, defect, Failure, transientFailure } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import { type RowHandler, RowSource } from '../csv/row-source.ts';
import { readNames } from '../csv/tokenizer.ts';
import { pauseAfter, RETRY, type RetryPolicy } from '../extract/download/retry.ts';
import type { ExportRefusal, ExportRequest, ExportService } from '../service/export/answer.ts';

export interface HeaderDeps {
  readonly service: ExportService;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  readonly retry?: RetryPolicy | undefined;
}

/** Days by which the first day may be moved: the service does not document its time zone. */
const MOST_MOVES = 2;

/**
 * The column names of one export: its first line, after which the connection is closed. Undefined when the service cannot
 * export so many days at once. Throws a Failure when the user must act or the service is not available.
 */
export async function exportHeader(question: ExportRequest, deps: HeaderDeps): Promise<readonly string[] | undefined> {
  const policy = deps.retry ?? RETRY;
  let asked = question;
  let moves = 0;
  let waits = 0;
  let unconfirmed: readonly string[] | undefined;
  for (let attempt = 1; ; attempt++) {
    const found = await askOnce(asked, deps);
    if ('header' in found) {
      if (found.isWhole || isSame(unconfirmed, found.header)) return found.header;
      unconfirmed = found.header;
      if (attempt >= policy.attempts) throw spent({ message: UNCONFIRMED }, attempt);
      continue;
    }
    const { kind } = found.refusal;
    if (kind === 'gone' && moves++ < MOST_MOVES) {
      asked = { ...asked, from: addDays(asked.from, 1) };
      continue;
    }
    if (kind === 'wait' && ++waits < policy.waits) {
      attempt--;
      continue;
    }
    if (kind === 'gone' || (kind === 'retry_or_split' && attempt >= policy.splitAfter)) return undefined;
    if (!isWorthRetrying(kind)) throw failureOf(found.refusal);
    if (attempt >= policy.attempts) throw spent(found.refusal, attempt);
    deps.logger.warn('discover.retry', `The export of the header failed: ${found.refusal.message}; again.`, {
      attempt,
    });
    await deps.clock.sleep(pauseAfter(attempt, policy, deps.random), deps.signal);
  }
}

/** The names of a first line. `isWhole`: it had a line end; else it may have been cut in its last name (S60). */
interface HeaderLine {
  readonly header: readonly string[];
  readonly isWhole: boolean;
}

const UNCONFIRMED = 'the first line has no line end, and was another one each time';

const isSame = (before: readonly string[] | undefined, header: readonly string[]): boolean =>
  before !== undefined && before.join('\0') === header.join('\0');

type HeaderResult = HeaderLine | { readonly refusal: Pick<ExportRefusal, 'kind' | 'message'> };

async function askOnce(question: ExportRequest, deps: HeaderDeps): Promise<HeaderResult> {
  deps.signal.throwIfAborted();
  const answer = await deps.service.exportEvents(question, deps.signal);
  if (answer.kind !== 'data') return { refusal: answer };
  try {
    return await readHeader(answer.bytes);
  } catch (error) {
    deps.signal.throwIfAborted();
    if (!(error instanceof Failure) || error.kind !== 'transient') throw error;
    return { refusal: { kind: 'retry', message: error.message } };
  } finally {
    await answer.close();
  }
}

/** The first line of a body, which is read no further. Throws a Failure if there is none. */
export async function readHeader(bytes: AsyncIterable<Uint8Array>): Promise<HeaderLine> {
  const taker = new HeaderTaker();
  const source = new RowSource(taker);
  for await (const chunk of bytes) {
    try {
      source.push(chunk);
    } catch (error) {
      // What is wrong behind the header does not matter here.
      if (taker.names === undefined) throw error;
    }
    if (taker.names !== undefined) return { header: taker.names, isWhole: true };
  }
  source.finish();
  source.release();
  if (taker.names === undefined) throw transientFailure('The export ended before its first line did.');
  return { header: taker.names, isWhole: source.finalNewline };
}

class HeaderTaker implements RowHandler {
  names: readonly string[] | undefined;

  row(bytes: Uint8Array, _start: number, source: RowSource): boolean {
    this.names ??= readNames(bytes, source.tokenizer);
    return false;
  }
}

const isWorthRetrying = (kind: ExportRefusal['kind']): boolean =>
  kind === 'retry' || kind === 'retry_or_split' || kind === 'wait';

const failureOf = ({ kind, message }: Pick<ExportRefusal, 'kind' | 'message'>): Failure =>
  kind === 'defect' ? defect(message) : configFailure(message);

const spent = ({ message }: Pick<ExportRefusal, 'message'>, attempts: number): Failure =>
  transientFailure(
    `The columns could not be read: ${attempts} exports failed, the last one because ${message}. Try again later.`,
  );
