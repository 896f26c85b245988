import { addDays, dayAt } from '../base/days.ts';
import { formatDuration } from '../base/durations.ts';
import { UserError } from '../base/errors.ts';
import type { Runtime } from '../base/runtime.ts';
import { missingColumns } from '../cells/columns/groups.ts';
import { MalformedCsv } from '../cells/csv/malformed.ts';
import type { SourceConfig } from '../config/source.ts';
import { ExportClient } from './export/client.ts';
import { readHeader } from './export/header.ts';
import {
  type ExportAnswer,
  type ExportBody,
  type ExportRefusal,
  type ExportRequest,
  UnreadableBody,
} from './export/protocol.ts';
import { allowedFrom, type LimitHeaders, NO_LIMITS } from './http/headers.ts';
import { TimeLimitReached, withinTime } from './http/time-limit.ts';

/** What one minimal export shows of address, service and token. */
export interface CheckVerdict {
  /** True when a sync may proceed: no answer indicates a fault of the configuration. */
  readonly usable: boolean;
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
const NO_EVENT = 'dfinery_elt_check_no_such_event';

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
  const ask = async (request: ExportRequest, limited: AbortSignal) => {
    const answer = await client.exportEvents(request, limited);
    const finding =
      answer.kind === 'data'
        ? await findingInBody(answer, host)
        : findingInRefusal(answer, { host, serviceId, now: clock.now() });
    const { mayBeForEvent = false, ...verdict } = finding;
    return { verdict: { ...verdict, limits: answer.limits }, mayBeForEvent };
  };
  logger.info('check.cost', COST);
  try {
    signal.throwIfAborted();
    return await withinTime(SOURCE_CHECK_TIMEOUT_MS, { clock, signal }, async (limited) => {
      // Yesterday in UTC has begun everywhere, and is not too old for any service.
      const day = addDays(dayAt(clock.now()), -1);
      const everything = { properties: [], propertiesCondition: 'all' } as const;
      const oneDay = { ...everything, from: day, to: day, events: [NO_EVENT], eventsCondition: 'include' } as const;
      const first = await ask(oneDay, limited);
      if (!first.mayBeForEvent) return first.verdict;
      logger.info('check.second', 'The first answer decides nothing: the check asks once more, without a filter.');
      // If this is refused too, neither the event nor the range of one day was the reason.
      const twoDays = { ...everything, from: addDays(day, -1), to: day, events: [], eventsCondition: 'all' } as const;
      return (await ask(twoDays, limited)).verdict;
    });
  } catch (error) {
    signal.throwIfAborted();
    return { ...unanswered(error, host, isConnected), limits: NO_LIMITS };
  } finally {
    await client.close();
  }
}

interface Finding extends Omit<CheckVerdict, 'limits'> {
  /** True if the event that does not exist may be the reason of the answer; default false. */
  readonly mayBeForEvent?: boolean;
}

async function findingInBody(body: ExportBody, host: string): Promise<Finding> {
  const notAnExport = (code: string, why: string): Finding => {
    const message = `${host} answers, but not with an export of events (${why}): is base_url right?`;
    return { usable: false, kind: 'config', code, message };
  };
  try {
    const missing = missingColumns((await readHeader(body.bytes)).header);
    if (missing.length > 0)
      return notAnExport('no_such_columns', `${missing.length} columns of every export are missing`);
    const message = `${host} accepts token and service, and exports events.`;
    return { usable: true, kind: 'data', code: 'ok', message };
  } catch (error) {
    if (error instanceof UnreadableBody)
      return { usable: false, kind: 'retry', code: error.fault, message: tryLater(error.message, host) };
    if (!(error instanceof MalformedCsv)) throw error;
    return error.reason === 'empty_body'
      ? noEvents('data', error.reason, 'nothing at all')
      : notAnExport(error.reason, error.reason);
  } finally {
    await body.close();
  }
}

const noEvents = (kind: Finding['kind'], code: string, answer: string): Finding => {
  const message = `The service accepts token and service, and answers with ${answer}: there seem to be no events yet.`;
  return { usable: true, kind, code, message, mayBeForEvent: true };
};

/** A clause, which may begin with the host, as a sentence. */
const tryLater = (clause: string, host: string): string =>
  `${clause.startsWith(host) ? clause : clause.charAt(0).toUpperCase() + clause.slice(1)}. Try again later.`;

function findingInRefusal(
  { kind, code, message, status, emptyAs, isPage, limits }: ExportRefusal & Pick<ExportAnswer, 'limits'>,
  { host, serviceId, now }: { readonly host: string; readonly serviceId: string; readonly now: number },
): Finding {
  if (isPage) return { usable: false, kind: 'config', code, message: `${message}: is base_url right?` };
  switch (kind) {
    case 'config':
    case 'unreadable':
      return { usable: false, kind: 'config', code, message, mayBeForEvent: emptyAs !== undefined };
    case 'invalid': {
      const reason = `${host} does not know service_id ${JSON.stringify(serviceId)}, or its token is another service's (${code}).`;
      return { usable: false, kind, code, message: reason, mayBeForEvent: true };
    }
    case 'retry':
    case 'retry_or_split':
      if (emptyAs !== undefined) return noEvents(kind, code, emptyAs);
      return { usable: false, kind, code, message: tryLater(message, host), mayBeForEvent: status !== undefined };
    case 'gone': {
      const question = `${message} Yesterday was asked for: is this machine's clock right?`;
      return { usable: true, kind, code, message: question };
    }
    case 'wait': {
      const from = allowedFrom(limits);
      const until =
        from === undefined
          ? 'The service does not say when it may be asked again'
          : `It may be asked again at ${new Date(from).toISOString()}, in ${formatDuration(from - now)}`;
      const text = `The service answers, but its limit of exports is reached. ${until}; a run waits for that by itself.`;
      return { usable: true, kind, code, message: text };
    }
  }
}

function unanswered(error: unknown, host: string, isConnected: boolean): Finding {
  if (error instanceof UserError) {
    const kind = error.kind === 'config' ? 'config' : 'retry';
    return { usable: false, kind, code: error.kind, message: error.message };
  }
  if (!(error instanceof TimeLimitReached)) throw error;
  const time = formatDuration(SOURCE_CHECK_TIMEOUT_MS);
  const message = isConnected
    ? `${host} takes connections, but gave no answer within ${time}: an export may need longer than this check waits. Only a sync can show that.`
    : `${host} did not take a connection within ${time}: is base_url right, and may this machine reach it?`;
  return { usable: isConnected, kind: 'retry', code: isConnected ? 'slow' : 'connect_timeout', message };
}
