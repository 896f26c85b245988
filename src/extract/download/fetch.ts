import type { Day } from '../../base/days.ts';
import { formatDuration } from '../../base/durations.ts';
import { configFailure, defect, transientFailure } from '../../base/errors.ts';
import type { ExportQuestion } from '../../service/export/request.ts';
import { missesLateRows, settledThrough } from '../plan/calendar.ts';
import { keyOf } from '../question.ts';
import { type Attempt, attemptExport, type Inspect } from './attempt.ts';
import { pauseAfter } from './retry.ts';
import type { Run } from './run.ts';
import type { Verified } from './verified.ts';

/** An export asked for until there is an answer that means something. */
export type Fetched =
  | { readonly kind: 'verified'; readonly part: Verified }
  | { readonly kind: 'gone' | 'invalid' | 'too_big'; readonly message: string };

export interface FetchOptions {
  /** The last day that must be over for the file to be worth keeping for another run. */
  readonly through: Day;
  /** Tries before "too big" is believed; undefined: as the policy says. */
  readonly splitAfter?: number | undefined;
}

/** Where the tries of one export stand. */
interface Tries {
  attempt: number;
  waits: number;
  big: number;
  readonly same: Map<string, number>;
  kept: string | undefined;
  /** The last download whose end was in doubt. */
  doubtful: Verified | undefined;
  /** Lets the other windows go on that wait for this one's confirmation. */
  confirms: boolean;
  release: () => void;
}

/**
 * One export, verified, from an earlier run's spool or from the service. Throws a Failure when the policy's attempts
 * are spent, when the user must act, or when the spool cannot be written.
 */
export async function fetchExport(run: Run, question: ExportQuestion, options: FetchOptions): Promise<Fetched> {
  // Nothing is waited for where there is nothing: exports start in the order of days.
  const reused = run.spool.has(keyOf(question)) ? await reuse(run, question, options) : undefined;
  if (reused !== undefined) return { kind: 'verified', part: reused };
  const tries: Tries = {
    attempt: 0,
    waits: 0,
    big: 0,
    same: new Map(),
    kept: undefined,
    doubtful: undefined,
    confirms: false,
    release() {},
  };
  try {
    for (;;) {
      run.signal.throwIfAborted();
      tries.attempt++;
      const attempt = await run.limit(() => attemptExport(run, question, inspectFor(run, tries)));
      const fetched = await judge(run, question, options, tries, attempt);
      if (fetched !== undefined) return fetched;
    }
  } finally {
    tries.release();
    if (tries.doubtful !== undefined) await run.spool.discard(tries.doubtful);
  }
}

async function reuse(run: Run, question: ExportQuestion, options: FetchOptions): Promise<Verified | undefined> {
  const part = await run.spool.take(keyOf(question), run.plan.state.last_receipt);
  if (part === undefined) return undefined;
  const { lookbackDays } = run.plan;
  const isTooOld = missesLateRows(question.from, options.through, part.sentAt, run.deps.clock.now(), lookbackDays);
  if (isTooOld || !isWorthKeeping(run, part, options)) {
    await run.spool.discard(part);
    return undefined;
  }
  run.deps.logger.info('window.reused', `${name(question)}: a verified download of an earlier run is used.`, {
    window: name(question),
    rows: part.scan.rows,
  });
  return part;
}

/** True when all its days were over, and settled where that is asked for, as it was sent for (S11). */
const isWorthKeeping = (run: Run, part: Verified, options: FetchOptions): boolean =>
  options.through <= settledThrough(part.sentAt, run.plan.settleHours);

function inspectFor(run: Run, tries: Tries): Inspect {
  return {
    armed: () => [...tries.same.values()].some((count) => count >= run.retry.malformedAfter - 1),
    wants: (same) => {
      const count = (tries.same.get(same) ?? 0) + 1;
      tries.same.set(same, count);
      return count >= run.retry.malformedAfter;
    },
    kept: (path) => {
      tries.kept = path;
    },
  };
}

/** The answer, when there is one; undefined after the pause that precedes the next attempt. */
async function judge(
  run: Run,
  question: ExportQuestion,
  options: FetchOptions,
  tries: Tries,
  attempt: Attempt,
): Promise<Fetched | undefined> {
  const where = { window: name(question), attempt: tries.attempt };
  switch (attempt.kind) {
    case 'verified':
      return accept(run, options, tries, attempt.part, attempt.spoolCrc);
    case 'unconfirmed':
      return doubt(run, question, options, tries, attempt.part, attempt.spoolCrc);
    case 'gone':
    case 'invalid':
      return { kind: attempt.kind, message: attempt.message };
    case 'config':
      throw configFailure(attempt.message, { where, internal: attempt.code });
    case 'defect':
      throw defect(attempt.message, { where, internal: attempt.code });
    case 'wait':
      return waitForQuota(run, question, tries, attempt.message);
    case 'retry_or_split':
      return again(run, question, options, tries, attempt.code, attempt.message, true);
    case 'retry':
      return again(run, question, options, tries, attempt.code, attempt.message, false);
    case 'broken':
      if (tries.kept !== undefined) throw malformedAlways(run, question, attempt.message, tries.kept);
      return again(run, question, options, tries, attempt.code, attempt.message, attempt.code === 'stall');
  }
}

async function accept(
  run: Run,
  options: FetchOptions,
  tries: Tries,
  found: Verified,
  spoolCrc: number,
): Promise<Fetched> {
  const part = { ...found, exports: tries.attempt + tries.waits };
  run.known.answered = true;
  for (const event of part.scan.eventNames) run.known.names.add(event);
  if (isWorthKeeping(run, part, options)) await run.spool.keep(part, spoolCrc);
  return { kind: 'verified', part };
}

/** Twice the same bytes without a line end: that is how this service ends a body, for the rest of the run and later. */
async function doubt(
  run: Run,
  question: ExportQuestion,
  options: FetchOptions,
  tries: Tries,
  part: Verified,
  spoolCrc: number,
): Promise<Fetched | undefined> {
  const before = tries.doubtful;
  tries.doubtful = part;
  await turnToConfirm(run, tries);
  if (before !== undefined) await run.spool.discard(before);
  if (run.known.finalNewline === false || before?.sha256 === part.sha256) {
    run.known.finalNewline = false;
    tries.doubtful = undefined;
    return accept(run, options, tries, part, spoolCrc);
  }
  const why = 'the last row has no line end and may have been cut';
  return again(run, question, options, tries, 'no_final_newline', why, false);
}

/** One window at a time spends a second export on the question; the others take its answer. */
async function turnToConfirm(run: Run, tries: Tries): Promise<void> {
  if (tries.confirms) return;
  while (run.known.confirming !== undefined) await run.known.confirming;
  if (run.known.finalNewline === false) return;
  tries.confirms = true;
  run.known.confirming = new Promise((resolve) => {
    tries.release = () => {
      run.known.confirming = undefined;
      resolve();
    };
  });
}

async function waitForQuota(run: Run, question: ExportQuestion, tries: Tries, message: string): Promise<undefined> {
  tries.attempt--;
  tries.waits++;
  if (tries.waits >= run.retry.waits) {
    throw transientFailure(`${name(question)}: ${message} Asked ${tries.waits} times; run again later.`);
  }
  run.deps.logger.info('window.wait', `${name(question)}: ${message} It is asked for again as soon as that allows.`, {
    window: name(question),
    wait: tries.waits,
  });
  return undefined;
}

async function again(
  run: Run,
  question: ExportQuestion,
  options: FetchOptions,
  tries: Tries,
  code: string,
  message: string,
  maybeBig: boolean,
): Promise<Fetched | undefined> {
  const { logger, clock, random } = run.deps;
  const fields = { window: name(question), attempt: tries.attempt, cause: code };
  const why = withCode(message, code);
  if (maybeBig && ++tries.big >= (options.splitAfter ?? run.retry.splitAfter)) {
    logger.warn(
      'window.split',
      `${name(question)}, attempt ${tries.attempt}: ${why} again and again; a smaller question is asked next.`,
      fields,
    );
    return { kind: 'too_big', message };
  }
  if (tries.attempt >= run.retry.attempts) throw spent(question, tries, code, why);
  const pause = pauseAfter(tries.attempt, run.retry, random);
  logger.warn(
    'window.retry',
    `${name(question)}, attempt ${tries.attempt} of ${run.retry.attempts}: ${why}; again in ${formatDuration(pause)}.`,
    { ...fields, pause_ms: pause },
  );
  await clock.sleep(pause, run.signal);
  return undefined;
}

/** The code is for those who search; where the reason says it already, once is enough. */
const withCode = (message: string, code: string): string =>
  message.includes(`(${code})`) ? message : `${message} (${code})`;

const spent = (question: ExportQuestion, tries: Tries, code: string, why: string) =>
  transientFailure(
    `The export of ${name(question)} failed ${tries.attempt} times, at last because ${why}; nothing of it was stored, ` +
      'run again later.',
    { where: { window: name(question), attempt: tries.attempt }, internal: code },
  );

const malformedAlways = (run: Run, question: ExportQuestion, message: string, path: string) =>
  transientFailure(
    `The export of ${name(question)} was broken in the same way ${run.retry.malformedAfter} times: ${message}. The last ` +
      `body is kept for inspection, for seven days, as ${path}.`,
    { where: { window: name(question), file: path } },
  );

/** A window for messages: `2026-01-01` or `2026-01-01..2026-01-03`. */
export const name = ({ from, to }: { readonly from: Day; readonly to: Day }): string =>
  from === to ? from : `${from}..${to}`;
