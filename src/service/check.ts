import { addDays, dayAt } from '../base/days.ts';
import { UserError } from '../base/errors.ts';
import { formatDuration } from '../base/quantities.ts';
import type { Runtime } from '../base/runtime.ts';
import { sentenceOf } from '../base/visible-text.ts';
import { missingColumns } from '../cells/csv/header.ts';
import { MalformedCsv } from '../cells/csv/malformed.ts';
import type { SourceConfig } from '../config/source.ts';
import { type LimitHeaders, NO_LIMITS } from '../http/headers.ts';
import { TimeLimitReached, withinTime } from '../http/time-limit.ts';
import { ExportClient } from './export/client.ts';
import { readHeader } from './export/header.ts';
import { HTML_PAGE, NOT_FOUND } from './export/outcomes.ts';
import { type EventRequest, type ExportBody, type ExportRefusal, InterruptedBody } from './export/protocol.ts';
import { afterAnswer, NO_QUOTA } from './export/quota-rules.ts';

/** What one minimal export shows of address, service and token. */
export interface CheckVerdict {
  /** `usable`: no answer indicates a wrong configuration. `config`: the user must act. `later`: neither is known. */
  readonly kind: 'usable' | 'config' | 'later';
  /** The code of the answer in the table of outcomes; `ok` for an export. */
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
  const ask = (request: EventRequest, timedSignal: AbortSignal) =>
    client.export(request, timedSignal, async (answer) => {
      const refusal = answer.kind === 'data' ? await refusalInBody(answer.bytes, host) : answer;
      return { refusal, limits: answer.limits };
    });
  logger.info('check.cost', COST);
  try {
    signal.throwIfAborted();
    return await withinTime(SOURCE_CHECK_TIMEOUT_MS, { clock, signal }, async (timedSignal) => {
      // Yesterday in UTC has begun everywhere, and is not too old for any service.
      const day = addDays(dayAt(clock.now()), -1);
      const noFilter = { properties: [], propertiesCondition: 'all' } as const;
      const oneDay = { ...noFilter, from: day, to: day, events: [MISSING_EVENT], eventsCondition: 'include' } as const;
      let { refusal, limits } = await ask(oneDay, timedSignal);
      if (mayBeDueToEvent(refusal)) {
        logger.info('check.second', 'The first answer decides nothing: the check asks once more, without a filter.');
        // If this is refused too, neither the event nor the range of one day was the reason.
        const twoDays = { ...noFilter, from: addDays(day, -1), to: day, events: [], eventsCondition: 'all' } as const;
        ({ refusal, limits } = await ask(twoDays, timedSignal));
      }
      return { ...findingOf(refusal, { host, serviceId, limits, now: clock.now() }), limits };
    });
  } catch (error) {
    signal.throwIfAborted();
    return { ...findingWithoutAnswer(error, host, isConnected), limits: NO_LIMITS };
  } finally {
    await client.close();
  }
}

/** True if the event that does not exist may be the reason of a refusal. */
function mayBeDueToEvent(refusal: ExportRefusal | undefined): boolean {
  if (refusal === undefined || refusal.code === HTML_PAGE || refusal.status === undefined) return false;
  return ['empty', 'invalid', 'retry', 'retry_or_split'].includes(refusal.kind);
}

/** Why a body is no export of events, as its header shows; undefined for one that is. */
async function refusalInBody(bytes: ExportBody['bytes'], host: string): Promise<ExportRefusal | undefined> {
  const status = 200;
  const notAnExport = (code: string, why: string): ExportRefusal => {
    const clause = `${host} answers, but not with an export of events (${why}): is base_url right?`;
    return { kind: 'config', code, clause, status };
  };
  try {
    const missing = missingColumns(await readHeader(bytes));
    if (missing.length === 0) return undefined;
    return notAnExport('no_such_columns', `${missing.length} columns of every export are missing`);
  } catch (error) {
    if (error instanceof InterruptedBody) return error.refusal;
    if (!(error instanceof MalformedCsv)) throw error;
    const { reason: code, clause } = error;
    if (code === 'empty_body') return { kind: 'empty', code, clause: `${host} answered with no byte`, status };
    return notAnExport(code, clause);
  }
}

type Finding = Omit<CheckVerdict, 'limits'>;

interface AskedService {
  readonly host: string;
  readonly serviceId: string;
  readonly limits: LimitHeaders;
  /** The instant of the answer (ms since 1970). */
  readonly now: number;
}

/** What a refusal says, or an export of events. */
function findingOf(refusal: ExportRefusal | undefined, { host, serviceId, limits, now }: AskedService): Finding {
  if (refusal === undefined)
    return { kind: 'usable', code: 'ok', message: `${host} accepts token and service, and exports events.` };
  const { kind, code, clause } = refusal;
  switch (kind) {
    case 'empty': {
      if (code === NOT_FOUND) return { kind: 'config', code, message: `${clause}: is base_url right?` };
      const message = `${clause}, and accepts token and service: there seem to be no events yet.`;
      return { kind: 'usable', code, message };
    }
    case 'config':
    case 'unsupported':
      return { kind: 'config', code, message: sentenceOf(clause) };
    case 'invalid': {
      const message = `${host} does not know service_id ${JSON.stringify(serviceId)}, or its token is another service's (${code}).`;
      return { kind: 'config', code, message };
    }
    case 'retry':
    case 'retry_or_split':
      if (code === HTML_PAGE) return { kind: 'config', code, message: `${clause}: is base_url right?` };
      return { kind: 'later', code, message: `${sentenceOf(clause)} Try again later.` };
    case 'gone': {
      const message = `${sentenceOf(clause)} Yesterday was asked for: is this machine's clock right?`;
      return { kind: 'usable', code, message };
    }
    case 'wait': {
      const { refusedUntil } = afterAnswer(NO_QUOTA, { status: 429, isLimited: true, limits }, now);
      const until = `${new Date(refusedUntil).toISOString()}, in ${formatDuration(refusedUntil - now)}`;
      const message = `The service answers, but its limit of exports is reached. A run waits by itself, and asks again at ${until}.`;
      return { kind: 'usable', code, message };
    }
  }
}

function findingWithoutAnswer(error: unknown, host: string, isConnected: boolean): Finding {
  if (error instanceof UserError)
    return { kind: error.kind === 'config' ? 'config' : 'later', code: error.kind, message: error.message };
  if (!(error instanceof TimeLimitReached)) throw error;
  const time = formatDuration(SOURCE_CHECK_TIMEOUT_MS);
  if (isConnected) {
    const message = `${host} takes connections, but gave no answer within ${time}: an export may need longer than this check waits. Only a sync can show that.`;
    return { kind: 'usable', code: 'slow', message };
  }
  const message = `${host} did not take a connection within ${time}: is base_url right, and may this machine reach it?`;
  return { kind: 'later', code: 'connect_timeout', message };
}
