import { addDays, dayAt } from '../base/days.ts';
import { formatDuration } from '../base/durations.ts';
import { UserError } from '../base/errors.ts';
import type { Runtime } from '../base/runtime.ts';
import { sentenceOf } from '../base/visible-text.ts';
import { missingColumns } from '../cells/columns/groups.ts';
import { MalformedCsv } from '../cells/csv/malformed.ts';
import type { SourceConfig } from '../config/source.ts';
import { allowedFrom, type LimitHeaders, NO_LIMITS } from '../http/headers.ts';
import { TimeLimitReached, withinTime } from '../http/time-limit.ts';
import { ExportClient } from './export/client.ts';
import { readHeader } from './export/header.ts';
import { HTML_PAGE, NOT_FOUND } from './export/outcomes.ts';
import {
  type ExportAnswer,
  type ExportBody,
  type ExportRefusal,
  type ExportRequest,
  InterruptedBody,
} from './export/protocol.ts';

/** What one minimal export shows of address, service and token. */
export interface CheckVerdict {
  /** True when a sync may proceed: no answer indicates a fault of the configuration. */
  readonly isUsable: boolean;
  /** The kind and the code of the answer in the table of outcomes; `data` and `ok` for an export. */
  readonly kind: ExportAnswer['kind'];
  readonly code: string;
  /** A sentence: what was found, and what to do. */
  readonly message: string;
  readonly limits: LimitHeaders;
}

type Service = Pick<SourceConfig, 'baseUrl' | 'serviceId' | 'exportToken'>;

const COST = 'This check costs one export of the hourly limit, sometimes two.';
/** Longest time for the whole check (ms): platforms end one that takes longer. */
const SOURCE_CHECK_TIMEOUT_MS = 4_000;
const MISSING_EVENT = 'dfinery_elt_check_no_such_event';

/**
 * Requests one day of an event that does not exist, and reads the header line alone. If that event may be the reason of
 * the answer, a second request without any filter decides. Never retries. Rejects with the signal's reason, and with a
 * defect of this program.
 */
export async function checkService(
  { baseUrl, serviceId, exportToken }: Service,
  { clock, logger, env, signal }: Omit<Runtime, 'random'>,
): Promise<CheckVerdict> {
  const { host } = new URL(baseUrl);
  let isConnected = false;
  const onConnect = () => {
    isConnected = true;
  };
  const client = new ExportClient({ baseUrl, serviceId, exportToken, clock, env, onConnect });
  const ask = async (request: ExportRequest, timedSignal: AbortSignal) => {
    const answer = await client.exportEvents(request, timedSignal);
    const { mayBeDueToEvent = false, ...verdict } = await findingOf(answer, { host, serviceId, now: clock.now() });
    return { verdict: { ...verdict, limits: answer.limits }, mayBeDueToEvent };
  };
  logger.info('check.cost', COST);
  try {
    signal.throwIfAborted();
    return await withinTime(SOURCE_CHECK_TIMEOUT_MS, { clock, signal }, async (timedSignal) => {
      // Yesterday in UTC has begun everywhere, and is not too old for any service.
      const day = addDays(dayAt(clock.now()), -1);
      const noFilter = { properties: [], propertiesCondition: 'all' } as const;
      const oneDay = { ...noFilter, from: day, to: day, events: [MISSING_EVENT], eventsCondition: 'include' } as const;
      const first = await ask(oneDay, timedSignal);
      if (!first.mayBeDueToEvent) return first.verdict;
      logger.info('check.second', 'The first answer decides nothing: the check asks once more, without a filter.');
      // If this is refused too, neither the event nor the range of one day was the reason.
      const twoDays = { ...noFilter, from: addDays(day, -1), to: day, events: [], eventsCondition: 'all' } as const;
      return (await ask(twoDays, timedSignal)).verdict;
    });
  } catch (error) {
    signal.throwIfAborted();
    return { ...findingWithoutAnswer(error, host, isConnected), limits: NO_LIMITS };
  } finally {
    await client.close();
  }
}

interface Finding extends Omit<CheckVerdict, 'limits'> {
  /** True if the event that does not exist may be the reason of the answer; default false. */
  readonly mayBeDueToEvent?: boolean;
}

interface AskedService {
  readonly host: string;
  readonly serviceId: string;
  /** The instant of the answer (ms since 1970). */
  readonly now: number;
}

const findingOf = async (answer: ExportAnswer, service: AskedService): Promise<Finding> =>
  answer.kind === 'data' ? await findingInBody(answer, service.host) : findingInRefusal(answer, service);

async function findingInBody(body: ExportBody, host: string): Promise<Finding> {
  const notAnExport = (code: string, why: string): Finding => {
    const message = `${host} answers, but not with an export of events (${why}): is base_url right?`;
    return { isUsable: false, kind: 'config', code, message };
  };
  try {
    const missing = missingColumns((await readHeader(body.bytes)).header);
    if (missing.length > 0)
      return notAnExport('no_such_columns', `${missing.length} columns of every export are missing`);
    const message = `${host} accepts token and service, and exports events.`;
    return { isUsable: true, kind: 'data', code: 'ok', message };
  } catch (error) {
    if (error instanceof InterruptedBody)
      return { isUsable: false, kind: 'retry', code: error.fault, message: `${error.message} Try again later.` };
    if (!(error instanceof MalformedCsv)) throw error;
    return error.reason === 'empty_body'
      ? noEvents(error.reason, `${host} answered with no byte`)
      : notAnExport(error.reason, error.sentence);
  } finally {
    await body.close();
  }
}

const noEvents = (code: string, clause: string): Finding => {
  const message = `${clause}, and accepts token and service: there seem to be no events yet.`;
  return { isUsable: true, kind: 'empty', code, message, mayBeDueToEvent: true };
};

function findingInRefusal(
  { kind, code, clause, status, limits }: ExportRefusal & Pick<ExportAnswer, 'limits'>,
  { host, serviceId, now }: AskedService,
): Finding {
  const wrongAddress: Finding = { isUsable: false, kind: 'config', code, message: `${clause}: is base_url right?` };
  if (code === HTML_PAGE) return wrongAddress;
  switch (kind) {
    case 'empty':
      return code === NOT_FOUND ? { ...wrongAddress, mayBeDueToEvent: true } : noEvents(code, clause);
    case 'config':
    case 'unsupported':
      return { isUsable: false, kind: 'config', code, message: sentenceOf(clause) };
    case 'invalid': {
      const message = `${host} does not know service_id ${JSON.stringify(serviceId)}, or its token is another service's (${code}).`;
      return { isUsable: false, kind, code, message, mayBeDueToEvent: true };
    }
    case 'retry':
    case 'retry_or_split': {
      const message = `${sentenceOf(clause)} Try again later.`;
      return { isUsable: false, kind, code, message, mayBeDueToEvent: status !== undefined };
    }
    case 'gone': {
      const message = `${sentenceOf(clause)} Yesterday was asked for: is this machine's clock right?`;
      return { isUsable: true, kind, code, message };
    }
    case 'wait': {
      const from = allowedFrom(limits);
      const until =
        from === undefined
          ? 'The service does not say when it may be asked again'
          : `It may be asked again at ${new Date(from).toISOString()}, in ${formatDuration(from - now)}`;
      const message = `The service answers, but its limit of exports is reached. ${until}; a run waits for that by itself.`;
      return { isUsable: true, kind, code, message };
    }
  }
}

function findingWithoutAnswer(error: unknown, host: string, isConnected: boolean): Finding {
  if (error instanceof UserError) {
    const kind = error.kind === 'config' ? 'config' : 'retry';
    return { isUsable: false, kind, code: error.kind, message: error.message };
  }
  if (!(error instanceof TimeLimitReached)) throw error;
  const time = formatDuration(SOURCE_CHECK_TIMEOUT_MS);
  const message = isConnected
    ? `${host} takes connections, but gave no answer within ${time}: an export may need longer than this check waits. Only a sync can show that.`
    : `${host} did not take a connection within ${time}: is base_url right, and may this machine reach it?`;
  return { isUsable: isConnected, kind: 'retry', code: isConnected ? 'slow' : 'connect_timeout', message };
}
