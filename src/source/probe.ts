import type { Clock } from '../base/clock.ts';
import { addDays, dayAt } from '../base/days.ts';
import { formatDuration } from '../base/durations.ts';
import { type Env, systemEnv } from '../base/env.ts';
import { UserError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import type { SourceConfig } from '../config/source.ts';
import { MalformedCsv } from '../csv/malformed.ts';
import { missingColumns } from '../schema/groups.ts';
import type { ExportAnswer, ExportRefusal, ExportRequest, Limits } from '../service/export/answer.ts';
import { createExportService } from '../service/export/client.ts';
import { TimeLimitReached, withinTime } from '../service/http/abort.ts';
import type { ExportAdmission, ExportQuota, Permit } from '../service/quota.ts';
import { readHeader } from './header.ts';

export type ProbeKind =
  | 'ok'
  | 'ok_no_events'
  | 'wrong_token'
  | 'wrong_service'
  | 'quota_spent'
  | 'unreachable'
  | 'not_this_service'
  | 'inconclusive';

/** What one minimal export has shown about address, service and token. */
export interface ProbeVerdict {
  readonly kind: ProbeKind;
  /** True when a sync may proceed: no answer indicates a fault of the configuration. */
  readonly usable: boolean;
  /** For people: what was found, and what to do. */
  readonly message: string;
  /** The code of the answer in the outcome table; for logs. */
  readonly code: string;
  readonly limits: Limits;
  /** The service's `Date` header in ms, when it had one. */
  readonly serverTime: number | undefined;
}

export interface ProbeOptions extends Pick<SourceConfig, 'baseUrl' | 'serviceId' | 'exportToken'> {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly env?: Env;
  /** Counts the export; is not waited for. */
  readonly quota?: Pick<ExportQuota, 'enterNow'>;
  /** From the first byte sent to the verdict; default 4 s. */
  readonly timeoutMs?: number;
}

/** The cost of a check, as a sentence to show before it. */
export const PROBE_COST =
  'One export of the hourly limit is spent on this check, or two where the service refuses the event that does not exist.';

const TIMEOUT_MS = 4_000;
const NO_EVENT = 'dfinery_elt_check_no_such_event';
const NO_LIMITS: Limits = { remaining: undefined, resetAt: undefined };

/**
 * Requests one day of an event that does not exist, reads the header line and disconnects. If that is refused as
 * invalid, a second request without any filter decides (S39). Waits for no quota, never retries. Rejects only when
 * aborted, with the signal's reason.
 */
export async function probeExport(options: ProbeOptions, signal: AbortSignal): Promise<ProbeVerdict> {
  signal.throwIfAborted();
  const { clock, timeoutMs = TIMEOUT_MS } = options;
  const seen = { connected: false };
  try {
    return await withinTime(timeoutMs, { clock, signal }, (limited) => probe(options, limited, seen));
  } catch (error) {
    signal.throwIfAborted();
    return unanswered(error, options, seen.connected);
  }
}

async function probe(options: ProbeOptions, signal: AbortSignal, seen: { connected: boolean }): Promise<ProbeVerdict> {
  const { clock, env = systemEnv, timeoutMs = TIMEOUT_MS } = options;
  const service = createExportService({
    ...options,
    env,
    quota: withoutWaiting(options.quota),
    stallMs: timeoutMs * 2,
    onConnect: () => {
      seen.connected = true;
    },
  });
  try {
    const first = await service.exportEvents(smallest(clock.now()), signal);
    if (first.kind !== 'invalid') return await verdictOf(first, options);
    options.logger.info('check.second', `${first.message} The check asks once more, without the event.`);
    return await verdictOf(await service.exportEvents(unfiltered(clock.now()), signal), options);
  } finally {
    await service.close();
  }
}

/** Yesterday in UTC: a day that is over nearly everywhere and can be exported everywhere. */
function smallest(now: number): ExportRequest {
  const day = addDays(dayAt(now), -1);
  return {
    from: day,
    to: day,
    events: [NO_EVENT],
    eventsCondition: 'include',
    properties: [],
    propertiesCondition: 'all',
  };
}

/**
 * Two days without any filter: what a service refuses here is neither an event that it does not know, nor a range of
 * one day, nor a day that has not begun.
 */
function unfiltered(now: number): ExportRequest {
  const { to, ...request } = smallest(now);
  return { ...request, from: addDays(to, -1), to, events: [], eventsCondition: 'all' };
}

async function verdictOf(answer: ExportAnswer, options: ProbeOptions): Promise<ProbeVerdict> {
  const finding = answer.kind === 'data' ? await fromData(answer, options) : fromRefusal(answer, options);
  return { ...finding, limits: answer.limits, serverTime: answer.serverTime };
}

const UNCOUNTED: Permit = { answered: async () => {}, release: async () => {} };

/** Exports are counted, where there is a quota to count them, and not waited for. */
function withoutWaiting(quota: ProbeOptions['quota']): ExportAdmission {
  return { enter: async () => quota?.enterNow() ?? UNCOUNTED, close: async () => {} };
}

type Finding = Pick<ProbeVerdict, 'kind' | 'usable' | 'message' | 'code'>;

const found = (kind: ProbeKind, usable: boolean, code: string, message: string): Finding => ({
  kind,
  usable,
  code,
  message,
});

async function fromData(answer: ExportAnswer & { kind: 'data' }, { baseUrl }: ProbeOptions): Promise<Finding> {
  const { host } = new URL(baseUrl);
  try {
    const missing = missingColumns((await readHeader(answer.bytes)).header);
    if (missing.length === 0) return found('ok', true, 'ok', `${host} accepts token and service, and exports events.`);
    return found(
      'not_this_service',
      false,
      'no_such_columns',
      `${host} answers, but not with an export of events (${missing.length} columns of every export are missing): is base_url right?`,
    );
  } catch (error) {
    if (!(error instanceof MalformedCsv)) throw error;
    return fromMalformed(error, host);
  } finally {
    await answer.close();
  }
}

/** The verdict for a first line that is not a header. */
function fromMalformed({ reason }: MalformedCsv, host: string): Finding {
  if (reason === 'empty_body') {
    const nothing = `${host} accepts token and service, and answers with nothing at all: there seem to be no events yet.`;
    return found('ok_no_events', true, 'empty_body', nothing);
  }
  const other = `${host} answers, but not with an export of events (${reason}): is base_url right?`;
  return found('not_this_service', false, reason, other);
}

type Finder = (refusal: ExportRefusal, limits: Limits, now: number) => Finding;

const wrongToken: Finder = ({ code, message }) => found('wrong_token', false, code, message);
const notThis: Finder = ({ code, message }) => found('not_this_service', false, code, message);

/** By the code of an outcome, for those whose kind would give another verdict (`BY_KIND`). */
const BY_CODE: Readonly<Record<string, Finder>> = {
  invalid_service_id: ({ code, message }) => found('wrong_service', false, code, message),
  redirect: notThis,
  not_here: notThis,
  refused_request: notThis,
  html_200: ({ code, message }) => found('not_this_service', false, code, `${capital(message)}: is base_url right?`),
  certificate: ({ code, message }) => found('unreachable', false, code, message),
  proxy: ({ code, message }) => found('unreachable', false, code, message),
};

const BY_KIND: Readonly<Record<ExportRefusal['kind'], Finder>> = {
  config: wrongToken,
  wait: ({ code }, { resetAt }, now) => {
    const until =
      resetAt === undefined
        ? 'The service does not say when it resets'
        : `It resets at ${new Date(resetAt).toISOString()}, in ${formatDuration(resetAt - now)}`;
    return found(
      'quota_spent',
      true,
      code,
      `The service answers, but its limit of exports is spent at the moment, which is no fault of the configuration. ${until}; a run waits for that by itself.`,
    );
  },
  invalid: ({ code, message }) =>
    found(
      'wrong_service',
      false,
      code,
      `${message} It refuses the smallest request, and one without any filter as well: check service_id and export_token.`,
    ),
  gone: ({ code, message }) =>
    found('inconclusive', true, code, `${message} Yesterday was asked for: is this machine's clock right?`),
  retry: ({ code, message, status }) =>
    status === undefined || status >= 500
      ? found('unreachable', false, code, `${capital(message)}. Try again later.`)
      : found('inconclusive', false, code, `${capital(message)}. Try again later.`),
  retry_or_split: ({ code, message }) => found('unreachable', false, code, `${capital(message)}. Try again later.`),
};

function fromRefusal(answer: ExportAnswer & ExportRefusal, { clock }: ProbeOptions): Finding {
  const find = BY_CODE[answer.code] ?? BY_KIND[answer.kind];
  return find(answer, answer.limits, clock.now());
}

function unanswered(
  error: unknown,
  { baseUrl, timeoutMs = TIMEOUT_MS }: ProbeOptions,
  connected: boolean,
): ProbeVerdict {
  const { host } = new URL(baseUrl);
  const rest = { limits: NO_LIMITS, serverTime: undefined };
  if (!(error instanceof TimeLimitReached)) {
    if (!(error instanceof UserError)) throw error;
    const kind = error.kind === 'config' ? 'wrong_token' : 'unreachable';
    return { ...found(kind, false, error.kind, error.message), ...rest };
  }
  const time = formatDuration(timeoutMs);
  const silent = `${host} takes connections, but gave no answer within ${time}: an export may need longer than this check waits. Only a sync can show that.`;
  const away = `${host} did not take a connection within ${time}: is base_url right, and may this machine reach it?`;
  return connected
    ? { ...found('inconclusive', true, 'slow', silent), ...rest }
    : { ...found('unreachable', false, 'connect_timeout', away), ...rest };
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
