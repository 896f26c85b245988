import { type Day, dayAt, nameDays } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import { Stopped } from '../../base/process.ts';
import { count, formatDuration } from '../../base/quantities.ts';
import { Secret } from '../../base/secrets.ts';
import { printable } from '../../base/visible-text.ts';
import { isSecure } from '../../config/base-url.ts';
import { NOTIFY_VARIABLE } from '../../config/environment.ts';
import { daysLeftOf, SOON_DAYS } from '../../extract/calendar.ts';
import { networkProblem } from '../../http/failures.ts';
import { TimeLimitReached, withinTime } from '../../http/time-limit.ts';
import { Transport } from '../../http/transport.ts';
import type { Place } from '../../targets/contract.ts';
import { type Context, secretOf } from '../context.ts';
import type { Summary } from '../results.ts';
import { describeSummary } from './summary.ts';

/** A run that is over. The place is unknown where the configuration was refused. */
export interface FinishedRun {
  readonly summary: Summary;
  readonly place: Place | undefined;
  readonly historyDays: number;
}

const TIMEOUT_MS = 10_000;
const TIMEOUT_WHEN_STOPPED_MS = 2_000;

const isTerminated = ({ reason }: AbortSignal): boolean => reason instanceof Stopped && reason.signal === 'SIGTERM';

/**
 * The address to notify, by option or environment; never printed, since many have a token in their path. Throws a
 * configuration failure for a bad address.
 */
export function notifyAddress(
  option: string | undefined,
  context: Pick<Context, 'env' | 'redactor'>,
): Secret | undefined {
  const url = option === undefined ? secretOf(NOTIFY_VARIABLE, context) : new Secret(option);
  context.redactor.add(url);
  if (url !== undefined && !isUsable(url.reveal())) {
    throw configError(
      `the address of ${option === undefined ? NOTIFY_VARIABLE : '--notify'} is not usable: wanted https:// (http:// on loopback alone) without user name and ` +
        'password; it is not shown here, since it may hold a token.',
    );
  }
  return url;
}

function isUsable(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  return url.username === '' && url.password === '' && isSecure(url);
}

/** The reasons to notify of a run, in sentences; empty for a run without anything unusual. */
function reasonsOf(summary: Summary, today: Day, historyDays: number): string[] {
  const { error, exit, columns_added, columns_widened, rescued_cells, implausible_days, next_from_date } = summary;
  const reasons: string[] = [];
  if (exit !== 0) reasons.push(`The run failed (exit ${exit})${error === null ? '.' : `: ${error}`}`);
  if (columns_added.length > 0)
    reasons.push(`${count(columns_added.length, 'new column')}: ${firstNames(columns_added)}.`);
  for (const { name, from, to } of columns_widened) reasons.push(`Column ${name} changed from ${from} to ${to}.`);
  if (rescued_cells > 0)
    reasons.push(`${count(rescued_cells, 'cell')} did not fit their columns; their text is in _rescued.`);
  if (implausible_days.length > 0)
    reasons.push(`Far fewer rows than usual on ${nameDays(implausible_days)}: the provider may lag.`);
  if (next_from_date === null) return reasons;
  const daysLeft = daysLeftOf(next_from_date, today, historyDays);
  if (daysLeft > SOON_DAYS) return reasons;
  const when = daysLeft === 0 ? 'until today at the latest' : `for ${count(daysLeft, 'more day')}`;
  const canBe = daysLeft < 0 ? 'can no longer be exported' : `can be exported ${when}`;
  return [...reasons, `${next_from_date}, the first day not yet complete, ${canBe}.`];
}

const MAX_NAMES = 10;
const firstNames = (names: readonly string[]): string =>
  names.length <= MAX_NAMES
    ? names.join(', ')
    : `${names.slice(0, MAX_NAMES).join(', ')} and ${names.length - MAX_NAMES} more`;

/** Sends the notification of a run, if there is a reason. Never throws: a failure to send is a warning. */
export async function notify(
  url: Secret,
  { summary, place, historyDays }: FinishedRun,
  context: Pick<Context, 'clock' | 'env' | 'logger' | 'signal'>,
): Promise<void> {
  const { clock, logger, signal } = context;
  const reasons = reasonsOf(summary, dayAt(clock.now()), historyDays).map(printable);
  // Whoever pressed Ctrl-C knows.
  if (reasons.length === 0 || (signal.aborted && !isTerminated(signal))) return;
  const command = place === undefined ? 'sync' : printable(`sync ${place.target.name} ${place.path}`);
  const text = [`dfinery-elt, ${command}:`, ...reasons, printable(describeSummary(summary, place))].join('\n');
  const body = JSON.stringify({ text, v: 1, command, reasons, summary });
  // A process that is told to end has seconds left, and makes one attempt.
  const limits = signal.aborted
    ? { attempts: 1, timeoutMs: TIMEOUT_WHEN_STOPPED_MS, signal: new AbortController().signal }
    : { attempts: 2, timeoutMs: TIMEOUT_MS, signal };
  let problem: string | undefined;
  for (let attempt = 1; attempt <= limits.attempts; attempt++) {
    problem = await post(new URL(url.reveal()), body, context, limits);
    if (problem === undefined) return;
  }
  logger.warn('run.notify', `The notification of this run could not be sent: ${problem}.`);
}

/** Makes one attempt. Returns why it failed, as a clause; undefined if it did not. */
async function post(
  url: URL,
  body: string,
  { env, clock }: Pick<Context, 'env' | 'clock'>,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<string | undefined> {
  const transport = new Transport({ baseUrl: url.origin, env, clock, keptConnections: 0 });
  const headers = { 'content-type': 'application/json' };
  const request = { method: 'POST' as const, path: `${url.pathname}${url.search}`, headers, body };
  try {
    const answer = await withinTime(timeoutMs, { clock, signal }, (limited) => transport.send(request, limited));
    answer.close();
    return answer.status >= 200 && answer.status < 300 ? undefined : `${url.host} answered ${answer.status}`;
  } catch (error) {
    if (signal.aborted) return `the run was stopped before ${url.host} answered`;
    if (error instanceof TimeLimitReached) return `${url.host} did not answer within ${formatDuration(timeoutMs)}`;
    return networkProblem(error, url.host).clause;
  } finally {
    await transport.close();
  }
}
