import { addDays, type Day, dayAt, formatDays } from '../../base/days.ts';
import { EXIT } from '../../base/errors.ts';
import { Stopped } from '../../base/process.ts';
import { formatCount } from '../../base/quantities.ts';
import { joinNames, printable } from '../../base/text.ts';
import { daysUntilCursorIsLost, type ExportedDays, LOST_SOON_DAYS } from '../../extract/calendar.ts';
import { networkProblem } from '../../http/failures.ts';
import { withinTime } from '../../http/time-limit.ts';
import { Transport } from '../../http/transport.ts';
import type { Context } from '../context.ts';
import type { Summary } from '../results.ts';
import type { SyncInput } from './run.ts';
import { describeSummary } from './summary.ts';

const TIMEOUT_MS = 10_000;
const TIMEOUT_WHEN_STOPPED_MS = 2_000;

/** The reasons to notify of a run, in sentences; empty for a run without anything unusual. */
function reasonsOf(summary: Summary, today: Day, settings: ExportedDays): string[] {
  const { error, exit, columns_added, columns_widened, rescued_cells, implausible_days, next_from_date } = summary;
  const reasons = [
    exit !== EXIT.done && `The run failed (exit ${exit})${error === null ? '.' : `: ${error}`}`,
    columns_added.length > 0 && `${formatCount(columns_added.length, 'new column')}: ${joinNames(columns_added)}.`,
    ...columns_widened.map(({ name, from, to }) => `Column ${name} changed from ${from} to ${to}.`),
    rescued_cells > 0 && `${formatCount(rescued_cells, 'cell')} did not fit their columns; their text is in _rescued.`,
    implausible_days.length > 0 &&
      `Far fewer rows than usual on ${formatDays(implausible_days)}: the provider may lag.`,
    next_from_date !== null && lossReason(next_from_date, today, settings),
  ];
  return reasons.filter((reason) => reason !== false);
}

/** Tells that the day of the cursor is soon lost, or is; false if many days are left, or if no run reads it. */
function lossReason(cursor: Day, today: Day, settings: ExportedDays): string | false {
  const daysLeft = daysUntilCursorIsLost(cursor, today, settings);
  if (daysLeft === null || daysLeft > LOST_SOON_DAYS) return false;
  const exportText =
    daysLeft < 0 ? 'can no longer be exported' : `can be exported until ${addDays(cursor, settings.historyDays)}`;
  return `${cursor}, the first day not yet complete, ${exportText}.`;
}

/**
 * Sends the notification of a run, if there is a reason. Never throws: a failure to send is a warning. After SIGTERM
 * seconds are left, and it waits for two. After Ctrl-C it sends nothing, since the user knows.
 */
export async function notify(
  summary: Summary,
  { place, config }: Pick<SyncInput, 'place' | 'config'>,
  context: Pick<Context, 'clock' | 'env' | 'logger' | 'signal'>,
): Promise<void> {
  const { clock, logger, signal } = context;
  const reasons = reasonsOf(summary, dayAt(clock.now()), config).map(printable);
  const isTerminated = signal.reason instanceof Stopped && signal.reason.signal === 'SIGTERM';
  const { notifyUrl } = config;
  if (notifyUrl === undefined || reasons.length === 0 || (signal.aborted && !isTerminated)) return;
  const command = printable(`sync ${place.target.name} ${place.address}`);
  const text = [`dfinery-elt, ${command}:`, ...reasons, printable(describeSummary(summary, place))].join('\n');
  const body = JSON.stringify({ text, v: 1, command, reasons, summary });
  const timeoutMs = isTerminated ? TIMEOUT_WHEN_STOPPED_MS : TIMEOUT_MS;
  const postSignal = isTerminated ? new AbortController().signal : signal;
  const problem = await post(new URL(notifyUrl.reveal()), body, { ...context, timeoutMs, signal: postSignal });
  if (problem !== undefined) logger.warn('run.notify', `The notification of this run could not be sent: ${problem}.`);
}

/** Returns why it failed, as a clause; undefined if it did not. */
async function post(
  url: URL,
  body: string,
  { env, clock, signal, timeoutMs }: Pick<Context, 'env' | 'clock' | 'signal'> & { readonly timeoutMs: number },
): Promise<string | undefined> {
  const transport = new Transport({ baseUrl: url.origin, env, clock, keptConnections: 0 });
  const headers = { 'content-type': 'application/json' };
  const request = { method: 'POST' as const, path: `${url.pathname}${url.search}`, headers, body };
  try {
    const answer = await withinTime(timeoutMs, { clock, signal }, (timedSignal) =>
      transport.send(request, timedSignal),
    );
    answer.close();
    return answer.status >= 200 && answer.status < 300 ? undefined : `${url.host} answered ${answer.status}`;
  } catch (error) {
    if (signal.aborted) return `the run was stopped before ${url.host} answered`;
    return networkProblem(error, url.host).clause;
  } finally {
    await transport.close();
  }
}
