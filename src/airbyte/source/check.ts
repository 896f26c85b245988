import { addDays, dayAt } from '../../base/days.ts';
import { formatDuration } from '../../base/durations.ts';
import { configError, UserError } from '../../base/errors.ts';
import type { Runtime } from '../../base/runtime.ts';
import { missingColumns } from '../../cells/columns/groups.ts';
import { MalformedCsv } from '../../cells/csv/malformed.ts';
import { parseSourceConfig, type SourceConfig } from '../../config/source.ts';
import { ExportClient } from '../../service/export/client.ts';
import type { ExportAnswer, ExportBody, ExportRefusal, ExportRequest } from '../../service/export/protocol.ts';
import { TimeLimitReached, withinTime } from '../../service/http/abort.ts';
import { allowedFrom, type LimitHeaders, NO_LIMITS } from '../../service/http/headers.ts';
import { type CheckVerb, openConfig } from '../protocol/connector.ts';
import { readHeader } from './header.ts';

/** The verb `check`. An exhausted quota is reported as such, not as a fault of the configuration. */
export const check: CheckVerb = async (value, context) => {
  const config = openConfig(parseSourceConfig(value, context.env), context);
  const verdict = await checkService(config, context);
  context.logger.debug('check.verdict', verdict.message, { kind: verdict.kind, code: verdict.code });
  if (!verdict.usable) throw configError(verdict.message);
  return verdict.message;
};

export type ProbeKind =
  | 'ok'
  | 'ok_no_events'
  | 'wrong_token'
  | 'wrong_service'
  | 'quota_spent'
  | 'unreachable'
  | 'not_this_service'
  | 'inconclusive';

/** What one minimal export shows of address, service and token. */
export interface ProbeVerdict {
  readonly kind: ProbeKind;
  /** True when a sync may proceed: no answer indicates a fault of the configuration. */
  readonly usable: boolean;
  /** A sentence: what was found, and what to do. */
  readonly message: string;
  /** The code of the answer in the outcome table. */
  readonly code: string;
  readonly limits: LimitHeaders;
}

type Service = Pick<SourceConfig, 'baseUrl' | 'serviceId' | 'exportToken'>;

const COST = 'This check costs one export of the hourly limit, sometimes two.';
/** Maximum time from the first byte sent to the verdict (ms). */
const SOURCE_CHECK_TIMEOUT_MS = 4_000;
const NO_EVENT = 'dfinery_elt_check_no_such_event';

/**
 * Requests one day of an event that does not exist, and reads the header line alone. If that shows neither an export nor
 * a wrong token, a second request without any filter decides. Never retries. Rejects only with the signal's reason.
 */
export async function checkService(
  { baseUrl, serviceId, exportToken }: Service,
  { clock, logger, env, signal }: Omit<Runtime, 'random'>,
): Promise<ProbeVerdict> {
  const { host } = new URL(baseUrl);
  let isConnected = false;
  const service = new ExportClient({
    baseUrl,
    serviceId,
    exportToken,
    clock,
    env,
    onConnect: () => {
      isConnected = true;
    },
  });
  const probe = async (limited: AbortSignal) => {
    const answer = await service.exportEvents(smallest(clock.now()), limited);
    const first = await verdictOf(answer, host, clock.now());
    if (!mayBeForEvent(answer, first)) return first;
    logger.info('check.second', `${first.message} The check asks once more, without the event.`);
    return verdictOf(await service.exportEvents(unfiltered(clock.now()), limited), host, clock.now());
  };
  logger.info('check.cost', COST);
  try {
    signal.throwIfAborted();
    return await withinTime(SOURCE_CHECK_TIMEOUT_MS, { clock, signal }, probe);
  } catch (error) {
    signal.throwIfAborted();
    return { ...unanswered(error, host, isConnected), limits: NO_LIMITS };
  } finally {
    await service.close();
  }
}

/** A request for yesterday in UTC: a day that is over nearly everywhere and can be exported everywhere. */
function smallest(now: number): ExportRequest {
  const day = addDays(dayAt(now), -1);
  const everything = { properties: [], propertiesCondition: 'all' } as const;
  return { from: day, to: day, events: [NO_EVENT], eventsCondition: 'include', ...everything };
}

/** Two days, no filter. If this is refused too, neither the event nor the range of one day was the reason. */
function unfiltered(now: number): ExportRequest {
  const request = smallest(now);
  return { ...request, from: addDays(request.to, -1), events: [], eventsCondition: 'all' };
}

/** True if the event that does not exist may be the reason of the answer. */
function mayBeForEvent(answer: ExportAnswer, { code }: ProbeVerdict): boolean {
  if (code === 'empty_body' || code === 'not_here') return true;
  if (answer.kind === 'invalid') return code !== 'invalid_service_id';
  const isFailure = answer.kind === 'retry' || answer.kind === 'retry_or_split';
  return isFailure && answer.status !== undefined && code !== 'html_200';
}

type Finding = Omit<ProbeVerdict, 'limits'>;

async function verdictOf(answer: ExportAnswer, host: string, now: number): Promise<ProbeVerdict> {
  const { limits } = answer;
  const found = answer.kind === 'data' ? await foundInBody(answer, host) : foundInRefusal(answer, limits, now);
  return { ...found, limits };
}

const usable = (kind: ProbeKind, code: string, message: string): Finding => ({ kind, usable: true, code, message });
const fault = (kind: ProbeKind, code: string, message: string): Finding => ({ kind, usable: false, code, message });

async function foundInBody(body: ExportBody, host: string): Promise<Finding> {
  const other = (code: string, why: string): Finding =>
    fault('not_this_service', code, `${host} answers, but not with an export of events (${why}): is base_url right?`);
  try {
    const missing = missingColumns((await readHeader(body.bytes)).header);
    if (missing.length > 0) return other('no_such_columns', `${missing.length} columns of every export are missing`);
    return usable('ok', 'ok', `${host} accepts token and service, and exports events.`);
  } catch (error) {
    if (!(error instanceof MalformedCsv)) throw error;
    if (error.reason !== 'empty_body') return other(error.reason, error.reason);
    const message = `${host} accepts token and service, and answers with nothing at all: there seem to be no events yet.`;
    return usable('ok_no_events', 'empty_body', message);
  } finally {
    await body.close();
  }
}

/** Codes of refusals that show more than their kind does. `advice` follows the message. */
const BY_CODE: Readonly<Record<string, { readonly kind: ProbeKind; readonly advice?: string }>> = {
  invalid_service_id: { kind: 'wrong_service' },
  html_200: { kind: 'not_this_service', advice: ': is base_url right?' },
  redirect: { kind: 'not_this_service' },
  not_here: { kind: 'not_this_service' },
  refused_request: { kind: 'not_this_service' },
  certificate: { kind: 'unreachable' },
  proxy: { kind: 'unreachable' },
};

function foundInRefusal(refusal: ExportRefusal, limits: LimitHeaders, now: number): Finding {
  const { kind, code, message, status, emptyAs } = refusal;
  if (emptyAs !== undefined && emptyAs !== '404') {
    const text = `The service accepts token and service, and answers with ${emptyAs}: there seem to be no events yet.`;
    return usable('ok_no_events', code, text);
  }
  if (Object.hasOwn(BY_CODE, code)) {
    const { kind: shown, advice = '' } = BY_CODE[code];
    return fault(shown, code, message + advice);
  }
  const sentence = message.charAt(0).toUpperCase() + message.slice(1);
  switch (kind) {
    case 'config':
      return fault('wrong_token', code, message);
    case 'invalid': {
      const advice =
        'It refuses the smallest request, and one without any filter as well: check service_id and export_token.';
      return fault('wrong_service', code, `${message} ${advice}`);
    }
    case 'retry':
    case 'retry_or_split': {
      const isAnswer = kind === 'retry' && status !== undefined && status < 500;
      return fault(isAnswer ? 'inconclusive' : 'unreachable', code, `${sentence}. Try again later.`);
    }
    case 'gone':
      return usable('inconclusive', code, `${message} Yesterday was asked for: is this machine's clock right?`);
    case 'wait': {
      const allowedAt = allowedFrom(limits);
      const until =
        allowedAt === undefined
          ? 'The service does not say when it may be asked again'
          : `It may be asked again at ${new Date(allowedAt).toISOString()}, in ${formatDuration(allowedAt - now)}`;
      const text =
        'The service answers, but its limit of exports is spent at the moment, which is no fault of the ' +
        `configuration. ${until}; a run waits for that by itself.`;
      return usable('quota_spent', code, text);
    }
  }
}

function unanswered(error: unknown, host: string, isConnected: boolean): Finding {
  if (error instanceof UserError) {
    return fault(error.kind === 'config' ? 'wrong_token' : 'unreachable', error.kind, error.message);
  }
  if (!(error instanceof TimeLimitReached)) throw error;
  const time = formatDuration(SOURCE_CHECK_TIMEOUT_MS);
  if (!isConnected) {
    const away = `${host} did not take a connection within ${time}: is base_url right, and may this machine reach it?`;
    return fault('unreachable', 'connect_timeout', away);
  }
  const silent = `${host} takes connections, but gave no answer within ${time}: an export may need longer than this check waits. Only a sync can show that.`;
  return usable('inconclusive', 'slow', silent);
}
