import { addDays, dayAt } from '../base/days.ts';
import { UserError } from '../base/errors.ts';
import { formatDuration } from '../base/quantities.ts';
import type { Runtime } from '../base/runtime.ts';
import { sentenceOf } from '../base/text.ts';
import { MalformedCsv } from '../cells/csv/malformed.ts';
import { missingColumns } from '../cells/header.ts';
import type { SourceConfig } from '../config/source.ts';
import { TimeLimitReached, withinTime } from '../http/time-limit.ts';
import { requireCloseClocks } from './clock-check.ts';
import { ExportClient } from './export/client.ts';
import { readHeader } from './export/export-header.ts';
import { type EventRequest, InterruptedExport, type RequestFailure } from './export/export-service.ts';
import { HTML_PAGE_CODE, NOT_FOUND_CODE } from './export/outcomes.ts';
import type { QuotaReport } from './quota-report.ts';

/** What one minimal export shows of address, service and token. */
export interface CheckVerdict {
  /** `usable`: no answer indicates a wrong configuration. `config`: the user must act. `later`: neither is known. */
  readonly kind: 'usable' | 'config' | 'later';
  /** The code of the answer, as in logs; `ok` for an export, `slow` if the time was over first. */
  readonly code: string;
  /** A sentence: what was found, and what to do. */
  readonly message: string;
  readonly quotaReport: QuotaReport;
}

/** Longest time for the whole check, and for a connection (ms): platforms end a check that takes longer. */
const CHECK_TIMEOUT_MS = 4_000;
const CONNECT_TIMEOUT_MS = 3_500;
const MISSING_EVENT = 'dfinery_elt_check_no_such_event';

/** What came of a request. `usable`: an export, or none within the time. */
interface CheckOutcome extends Omit<RequestFailure, 'kind'> {
  readonly kind: RequestFailure['kind'] | 'usable';
}

/** The kind of a verdict, and the clause of its message. */
type VerdictParts = readonly [kind: CheckVerdict['kind'], clause: string];

const tryLater = ({ clause }: CheckOutcome): VerdictParts => ['later', `${sentenceOf(clause)} Try again later`];
const checkAddress = ({ clause }: CheckOutcome): VerdictParts => ['config', `${clause}: is base_url right?`];

const VERDICTS: Record<CheckOutcome['kind'], (outcome: CheckOutcome, host: string, serviceId: string) => VerdictParts> =
  {
    usable: ({ clause }) => ['usable', clause],
    empty: (outcome) => {
      if (outcome.code === NOT_FOUND_CODE) return checkAddress(outcome);
      return ['usable', `${outcome.clause}, and accepts token and service: there seem to be no events yet`];
    },
    gone: ({ clause }) => ['usable', `${sentenceOf(clause)} Yesterday was asked for: is this machine's clock right?`],
    wait: () => ['usable', 'the service answers, but its limit of exports is reached. A run waits by itself'],
    invalid: ({ code }, host, serviceId) => {
      const id = JSON.stringify(serviceId);
      return ['config', `${host} does not know service_id ${id}, or its token is another service's (${code})`];
    },
    config: ({ clause }) => ['config', clause],
    unsupported: ({ clause }) => ['config', clause],
    retry: (outcome) => (outcome.code === HTML_PAGE_CODE ? checkAddress(outcome) : tryLater(outcome)),
    retry_or_split: tryLater,
  };

/** True if the event that is asked for may be the reason. It is not for a web page, although that is a `retry`. */
const mayDependOnEvent = ({ kind, code }: CheckOutcome): boolean =>
  code !== HTML_PAGE_CODE && ['empty', 'invalid', 'retry', 'retry_or_split'].includes(kind);

/**
 * Requests one day of an event that does not exist, and reads the header line alone. If that event may be the reason of
 * the answer, a second request without any filter decides. Never retries. Rejects with the signal's reason, and with a
 * defect of this program.
 */
export async function checkService(
  config: Pick<SourceConfig, 'baseUrl' | 'serviceId' | 'exportToken'>,
  { clock, logger, env, signal }: Omit<Runtime, 'random'>,
): Promise<CheckVerdict> {
  const { baseUrl, serviceId } = config;
  const { host } = new URL(baseUrl);
  const client = new ExportClient({ ...config, clock, env, connectTimeoutMs: CONNECT_TIMEOUT_MS });
  let quotaReport: QuotaReport = {};
  let firstOutcome: CheckOutcome | undefined;
  const ask = (request: EventRequest, timedSignal: AbortSignal): Promise<CheckOutcome> =>
    client.export(request, timedSignal, async (answer) => {
      ({ quotaReport } = answer);
      requireCloseClocks(clock.now(), answer.serverTime);
      return answer.kind === 'data' ? outcomeOfBody(answer.stream, host) : answer;
    });
  logger.info('check.cost', 'This check costs one export of the hourly limit, sometimes two.');
  try {
    signal.throwIfAborted();
    const outcome = await withinTime(CHECK_TIMEOUT_MS, { clock, signal }, async (timedSignal) => {
      // Yesterday in UTC has begun everywhere, and is not too old for any service.
      const day = addDays(dayAt(clock.now()), -1);
      const noFilter = { properties: [], propertiesCondition: 'all', events: [], eventsCondition: 'all' } as const;
      const oneEvent = { ...noFilter, events: [MISSING_EVENT], eventsCondition: 'include' } as const;
      firstOutcome = await ask({ ...oneEvent, from: day, to: day }, timedSignal);
      if (!mayDependOnEvent(firstOutcome)) return firstOutcome;
      logger.info('check.second', 'The first answer decides nothing: the check asks once more, without a filter.');
      // If this is refused too, neither the event nor the range of one day was the reason.
      return ask({ ...noFilter, from: addDays(day, -1), to: day }, timedSignal);
    }).catch((error: unknown) => {
      signal.throwIfAborted();
      return error instanceof TimeLimitReached ? outcomeAtTimeLimit(host, firstOutcome) : outcomeOfError(error);
    });
    const [kind, clause] = VERDICTS[outcome.kind](outcome, host, serviceId);
    return { kind, code: outcome.code, message: sentenceOf(clause), quotaReport };
  } finally {
    await client.close();
  }
}

async function outcomeOfBody(stream: AsyncIterable<Uint8Array>, host: string): Promise<CheckOutcome> {
  const notAnExport = (code: string, why: string): CheckOutcome => ({
    kind: 'config',
    code,
    clause: `${host} answers, but not with an export of events (${why}): is base_url right?`,
  });
  try {
    const missing = missingColumns(await readHeader(stream));
    if (missing.length > 0) return notAnExport('no_such_columns', `it lacks ${missing.join(', ')}`);
    return { kind: 'usable', code: 'ok', clause: `${host} accepts token and service, and exports events` };
  } catch (error) {
    if (!(error instanceof MalformedCsv)) throw error;
    return notAnExport(error.reason, error.clause);
  }
}

/**
 * What came of the requests when the time was over. A service that failed for the event may fail again. One that
 * refuses the configuration does so at once: if it refused the event alone, it is computing an export without it.
 */
function outcomeAtTimeLimit(host: string, firstOutcome: CheckOutcome | undefined): CheckOutcome {
  if (firstOutcome?.kind === 'retry' || firstOutcome?.kind === 'retry_or_split') return firstOutcome;
  const statement = firstOutcome
    ? `gave nothing for an event that does not exist (${firstOutcome.code}), and no export of all events`
    : 'takes connections, but sent no export';
  const clause = `${host} ${statement} within ${formatDuration(CHECK_TIMEOUT_MS)}: an export may need longer than this check waits. Only a sync can show that.`;
  return { kind: 'usable', code: 'slow', clause };
}

/** What came of a request that ended with this error. Throws a defect. */
function outcomeOfError(error: unknown): CheckOutcome {
  if (error instanceof InterruptedExport) return error.failure;
  if (!(error instanceof UserError)) throw error;
  const { kind, message } = error;
  return { kind: kind === 'config' ? 'config' : 'retry', code: kind, clause: message };
}
