// This folder: the exports of events and of profiles: one request, its answer, and what the answer means. `quota.ts`
// holds requests back, `quota-rules.ts` says when; `download.ts` repeats a request until its answer is final.

import type { Clock } from '../../base/clock.ts';
import type { Env } from '../../base/env.ts';
import { UserError } from '../../base/errors.ts';
import type { Runtime } from '../../base/runtime.ts';
import type { SourceConfig } from '../../config/source.ts';
import { firstBytes } from '../../http/body.ts';
import { bodyProblem, networkProblem } from '../../http/failures.ts';
import { NO_LIMITS, readDate, readLimits } from '../../http/headers.ts';
import { TimeLimit, TimeLimitReached } from '../../http/time-limit.ts';
import { type HttpAnswer, Transport } from '../../http/transport.ts';
import { firstMatch } from '../outcome-table.ts';
import { serviceRequest } from '../service-request.ts';
import { originOf, peekBody, readRefusalBody } from './content.ts';
import { type AnswerTraits, EXPORT_OUTCOMES, KIND_OF_FAULT } from './outcomes.ts';
import {
  type ExportAnswer,
  type ExportBody,
  type ExportRefusal,
  type ExportRequest,
  type ExportService,
  InterruptedBody,
  type ProfileRequest,
} from './protocol.ts';
import { ExportQuota, type ExportQuotaOptions } from './quota.ts';

/** No byte for so long ends a request: an export may be computed for minutes before its first byte. */
const STALL_MS = 600_000;

export interface ExportClientOptions extends Pick<SourceConfig, 'baseUrl' | 'serviceId' | 'exportToken'> {
  readonly clock: Clock;
  /** Without one, exports are sent at once. */
  readonly quota?: Pick<ExportQuota, 'enter'>;
  /** Has HTTPS_PROXY and NO_PROXY. */
  readonly env: Env;
  readonly onConnect?: () => void;
}

const propertiesFilter = ({ properties, propertiesCondition }: ProfileRequest) => ({
  ...(properties.length > 0 && { properties }),
  properties_condition_type: propertiesCondition,
});

/** The exports of events and of profiles over HTTP: one request and its answer; the caller retries. */
export class ExportClient implements ExportService {
  readonly #options: ExportClientOptions;
  readonly #transport: Transport;

  constructor(options: ExportClientOptions) {
    const { baseUrl, clock, onConnect, env } = options;
    this.#options = options;
    this.#transport = new Transport({ baseUrl, env, clock, keptConnections: 0, onConnect });
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  exportEvents(request: ExportRequest, signal: AbortSignal): Promise<ExportAnswer> {
    const { events, eventsCondition, from, to } = request;
    const body = {
      // No list is sent empty: the service takes that for everything, as if it were absent.
      ...(events.length > 0 && { events }),
      events_condition_type: eventsCondition,
      ...propertiesFilter(request),
      from_date: from,
      to_date: to,
    };
    return this.#export('/api/v1/export/event', body, signal);
  }

  exportProfiles(request: ProfileRequest, signal: AbortSignal): Promise<ExportAnswer> {
    const body = { ...propertiesFilter(request), identities_condition_type: 'all' };
    return this.#export('/api/v1/export/userprofile', body, signal);
  }

  async #export(path: string, body: object, signal: AbortSignal): Promise<ExportAnswer> {
    const { clock, quota, serviceId, exportToken } = this.#options;
    const headers = { Authorization: `Bearer ${exportToken.reveal()}`, 'Accept-Encoding': 'gzip' };
    const request = serviceRequest(path, serviceId, headers, body);
    const permit = await quota?.enter(signal);
    const timeLimit = new TimeLimit(clock, STALL_MS, signal);
    let answer: HttpAnswer | undefined;
    const close = () => {
      answer?.disconnect();
      timeLimit.end();
      permit?.release();
    };
    try {
      answer = await timeLimit.waitFor(this.#transport.send(request, timeLimit.signal));
      const { status } = answer;
      const outcome = await this.#outcome(answer, timeLimit).catch((error) => this.#brokenBody(error, status));
      const limits = readLimits(answer.headers, clock.now());
      permit?.recordAnswer({ status, isLimited: outcome.kind === 'wait', limits });
      signal.throwIfAborted();
      const head = { limits, serverTime: readDate(answer.headers) };
      if (outcome.kind === 'data')
        return { kind: 'data', bytes: this.#data(outcome.bytes, signal, close), close, ...head };
      close();
      return { ...outcome, ...head };
    } catch (error) {
      close();
      signal.throwIfAborted();
      if (error instanceof UserError) throw error;
      const noHead = { limits: NO_LIMITS, serverTime: undefined };
      if (error instanceof TimeLimitReached) return { ...this.#brokenBody(error), ...noHead };
      const { isConfig, code, clause } = networkProblem(error, this.#transport.host, 'base_url');
      return { kind: isConfig ? 'config' : 'retry', code, clause, ...noHead };
    }
  }

  /** Classifies an answer by its status and first bytes; reads the body of one that is not data. */
  async #outcome(
    answer: HttpAnswer,
    timeLimit: TimeLimit,
  ): Promise<Pick<ExportBody, 'kind' | 'bytes'> | ExportRefusal> {
    const bytes = answer.bytes(timeLimit);
    // What came before a failure may name its reason.
    const keepPart = { keepsPart: true };
    if (answer.status !== 200) return this.#classify(answer, await firstBytes(bytes, keepPart));
    const body = await peekBody(bytes);
    if (body.content === 'other' || body.content === 'empty') return { kind: 'data', bytes: body.bytes };
    return this.#classify(answer, await firstBytes(body.bytes, keepPart));
  }

  #classify(answer: HttpAnswer, body: Buffer): ExportRefusal {
    const { exportToken, baseUrl } = this.#options;
    const { content, reason } = readRefusalBody(body, exportToken.reveal());
    const traits: AnswerTraits = {
      status: answer.status,
      content,
      reason,
      host: this.#transport.host,
      location: originOf(answer.headers.location, baseUrl),
    };
    const { kind, code = reason ?? 'no_reason', text } = firstMatch(EXPORT_OUTCOMES, traits);
    return { kind, code, clause: text, status: answer.status };
  }

  /** The bytes of a body, whose errors become an InterruptedBody. Closes at the end. */
  async *#data(
    bytes: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
    close: () => void,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield* bytes;
    } catch (error) {
      signal.throwIfAborted();
      throw new InterruptedBody(this.#brokenBody(error), error);
    } finally {
      close();
    }
  }

  #brokenBody(error: unknown, status?: number): ExportRefusal {
    const { code, clause } = bodyProblem(error, this.#transport.host);
    return { kind: KIND_OF_FAULT[code], code, clause, status };
  }
}

/** The client of the service, with its quota, for one run. */
export function openExportClient(
  { baseUrl, serviceId, exportToken, maxConcurrentExports }: SourceConfig,
  { clock, env, logger }: Runtime,
  waits?: Pick<ExportQuotaOptions, 'maxWaitMs' | 'onWait'>,
): ExportClient {
  const quota = new ExportQuota({ maxConcurrentExports, clock, logger, ...waits });
  return new ExportClient({ baseUrl, serviceId, exportToken, clock, env, quota });
}
