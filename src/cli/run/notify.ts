import { type Day, dayAt } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import { printable } from '../../base/printable.ts';
import { count } from '../../base/quantities.ts';
import { Secret } from '../../base/secrets.ts';
import { baseUrlProblem } from '../../config/base-url.ts';
import { TimeLimitReached, withinTime } from '../../service/http/abort.ts';
import { networkProblem } from '../../service/http/network.ts';
import { Transport } from '../../service/http/transport.ts';
import { type Context, secretOf } from '../context.ts';
import { daysLeftOf, SOON_DAYS } from '../report/days.ts';
import { describeSummary, type Summary } from './summary.ts';

export interface Notification {
  /** Never printed: many such addresses contain a token in their path. */
  readonly url: Secret;
  /** True to notify after every run; false to notify only if there is a reason. */
  readonly always: boolean;
}

interface NotifiedRun {
  readonly summary: Summary;
  /** `sync duckdb events.duckdb`. */
  readonly command: string;
  readonly target: string;
  readonly historyDays: number;
}

type Sender = Pick<Context, 'clock' | 'env' | 'logger' | 'signal'>;

const ENV_NAME = 'DFINERY_NOTIFY_URL';
const NOTIFY_ATTEMPTS = 2;
const NOTIFY_TIMEOUT_MS = 10_000;

/**
 * The notification wanted by option or environment; undefined: none. Throws a configuration failure for a bad address.
 */
export function notificationOf(
  option: string | undefined,
  always: boolean,
  context: Pick<Context, 'env' | 'redactor'>,
): Notification | undefined {
  const url = option === undefined ? secretOf(ENV_NAME, context) : new Secret(option);
  context.redactor.add(url);
  if (url === undefined) {
    if (!always) return undefined;
    throw configError(`--notify-always needs an address: give it with --notify or in ${ENV_NAME}.`);
  }
  if (!isUsable(url.reveal())) {
    throw configError(
      'the address of --notify is not usable: wanted https:// (http:// on loopback alone) without user name and ' +
        'password; it is not shown here, since it may hold a token.',
    );
  }
  return { url, always };
}

function isUsable(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { origin, username, password } = new URL(text);
  return username === '' && password === '' && baseUrlProblem(origin) === undefined;
}

/** The reasons to notify of a run, in sentences; empty for a run without anything unusual. */
function reasonsOf(summary: Summary, today: Day, historyDays: number): string[] {
  const { error, exit, also, columns_added, columns_widened, rescued_cells, next_from_date } = summary;
  const reasons: string[] = [];
  if (exit !== 0) reasons.push(`The run failed (exit ${exit})${error === null ? '.' : `: ${error}`}`);
  for (const { target, place, exit: code, error: why } of also) {
    if (code !== 0) reasons.push(`${target} ${place} failed (exit ${code})${why === null ? '.' : `: ${why}`}`);
  }
  if (columns_added.length > 0) reasons.push(`${count(columns_added.length, 'new column')}: ${some(columns_added)}.`);
  for (const { name, from, to } of columns_widened) reasons.push(`Column ${name} changed from ${from} to ${to}.`);
  if (rescued_cells > 0)
    reasons.push(`${count(rescued_cells, 'cell')} did not fit their columns; their text is in _rescued.`);
  const cursors = [{ name: '', next: next_from_date }];
  for (const { target, place, next_from_date: next } of also) cursors.push({ name: ` in ${target} ${place}`, next });
  for (const { name, next } of cursors) {
    if (next === null) continue;
    const left = daysLeftOf(next, today, historyDays);
    if (left > SOON_DAYS) continue;
    const when = left <= 0 ? 'today' : `in ${count(left, 'day')}`;
    reasons.push(`${next}, the first day not yet complete${name}, can no longer be exported ${when}.`);
  }
  return reasons;
}

/**
 * One printable line without what chats take for a link or a call: `<!channel>`, `@everyone`, `[text](address)`.
 */
const withoutMarkup = (sentence: string): string =>
  printable(sentence)
    .replaceAll('<', '‹')
    .replaceAll('>', '›')
    .replaceAll(/@(?=\w)/g, '＠')
    .replaceAll('](', '] (');

const MAX_SHOWN = 10;
const some = (names: readonly string[]): string =>
  names.length <= MAX_SHOWN
    ? names.join(', ')
    : `${names.slice(0, MAX_SHOWN).join(', ')} and ${names.length - MAX_SHOWN} more`;

/**
 * Sends the notification of a run, if there is a reason or `always` is set. Never throws: a failure to send is a
 * warning.
 */
export async function notify({ url, always }: Notification, run: NotifiedRun, sender: Sender): Promise<void> {
  const { summary, command, target, historyDays } = run;
  const reasons = reasonsOf(summary, dayAt(sender.clock.now()), historyDays).map(withoutMarkup);
  if ((reasons.length === 0 && !always) || sender.signal.aborted) return;
  const text = [`dfinery-elt, ${command}:`, ...reasons, describeSummary(summary, target)].map(withoutMarkup).join('\n');
  const body = JSON.stringify({ text, v: 1, target: command, reasons, summary });
  let problem = '';
  for (let attempt = 0; attempt < NOTIFY_ATTEMPTS; attempt++) {
    const failed = await post(new URL(url.reveal()), body, sender);
    if (failed === undefined) return;
    problem = failed.message;
    if (!failed.isTemporary) break;
  }
  sender.logger.warn('run.notify', `The notification of this run could not be sent: ${problem}`);
}

/** One attempt; undefined when the receiver accepted it. `isTemporary`: another attempt may succeed. */
async function post(url: URL, body: string, sender: Sender) {
  const transport = new Transport({ baseUrl: url.origin, env: sender.env, clock: sender.clock, keptConnections: 0 });
  const request = { path: `${url.pathname}${url.search}`, headers: { 'content-type': 'application/json' }, body };
  try {
    const answer = await withinTime(NOTIFY_TIMEOUT_MS, sender, (signal) => transport.send(request, signal));
    answer.disconnect();
    if (answer.status >= 200 && answer.status < 300) return undefined;
    const isTemporary = answer.status === 429 || answer.status >= 500;
    return { message: `${url.host} answered ${answer.status}.`, isTemporary };
  } catch (error) {
    if (error instanceof TimeLimitReached || sender.signal.aborted)
      return { message: `${url.host} did not answer within ten seconds.`, isTemporary: true };
    return { message: `${networkProblem(error, url.host).message}.`, isTemporary: true };
  } finally {
    await transport.close();
  }
}
