import { codeOf, UserError } from '../../base/errors.ts';
import { formatDuration } from '../../base/quantities.ts';
import type { Runtime } from '../../base/runtime.ts';
import type { SourceConfig } from '../../config/source.ts';
import type { HttpAnswer } from '../../http/answer.ts';
import { type ByteStream, checkCharset, firstBytes } from '../../http/body.ts';
import { BodyMismatch, networkProblem } from '../../http/failures.ts';
import { TimeLimitReached, WaitLimit } from '../../http/time-limit.ts';
import { Transport } from '../../http/transport.ts';
import { operationRequest } from '../operation-request.ts';
import { matchOutcome } from '../outcome-table.ts';
import { readQuotaReport } from '../quota-report.ts';
import { contentOf, peekBody, reasonIn } from './content.ts';
import {
  type ExportAnswer,
  type ExportRequest,
  type ExportService,
  InterruptedExport,
  type RequestFailure,
} from './export-service.ts';
import { EXPORT_OUTCOMES, type ExportTraits } from './outcomes.ts';
import { ExportQuota, type ExportQuotaOptions } from './quota.ts';

/** No byte for so long ends a request: an export may be computed for minutes before its first byte. */
const STALL_MS = 600_000;

export interface ExportClientOptions
  extends Pick<SourceConfig, 'baseUrl' | 'serviceId' | 'exportToken'>,
    Pick<Runtime, 'clock' | 'env'> {
  /** Without one, exports are sent at once. */
  readonly quota?: Pick<ExportQuota, 'run' | 'record'>;
  readonly connectTimeoutMs?: number;
}

const UNLIMITED: Pick<ExportQuota, 'run' | 'record'> = { run: (_signal, send) => send(), record() {} };

function pathAndBodyOf(request: ExportRequest): readonly [path: string, body: object] {
  const { properties, propertiesCondition } = request;
  // No list is sent empty: the service takes that for everything, as if it were absent.
  const filter = { ...(properties.length > 0 && { properties }), properties_condition_type: propertiesCondition };
  if (!('from' in request)) return ['/api/v1/export/userprofile', { ...filter, identities_condition_type: 'all' }];
  const { events, eventsCondition, from, to } = request;
  const eventsFilter = { ...(events.length > 0 && { events }), events_condition_type: eventsCondition };
  return ['/api/v1/export/event', { ...eventsFilter, ...filter, from_date: from, to_date: to }];
}

/** The exports of events and of profiles over HTTP: one request and its answer; the caller retries. */
export class ExportClient implements ExportService {
  readonly #options: ExportClientOptions;
  readonly #transport: Transport;

  constructor(options: ExportClientOptions) {
    const { baseUrl, clock, connectTimeoutMs, env } = options;
    this.#options = options;
    this.#transport = new Transport({ baseUrl, env, clock, keptConnections: 0, connectTimeoutMs });
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  async export<T>(request: ExportRequest, signal: AbortSignal, use: (answer: ExportAnswer) => Promise<T>): Promise<T> {
    const { clock, quota = UNLIMITED } = this.#options;
    return quota.run(signal, async () => {
      const waitLimit = new WaitLimit(clock, STALL_MS, signal);
      let httpAnswer: HttpAnswer | undefined;
      try {
        httpAnswer = await this.#send(request, waitLimit);
        const dataOrFailure = await this.#classify(httpAnswer, waitLimit);
        const { headers } = httpAnswer;
        const serverTime = Date.parse(headers.date ?? '') || undefined;
        const answer = { ...dataOrFailure, quotaReport: readQuotaReport(headers, clock.now()), serverTime };
        quota.record(answer);
        signal.throwIfAborted();
        return await use(answer);
      } finally {
        httpAnswer?.close();
        waitLimit.release();
      }
    });
  }

  async #send(request: ExportRequest, waitLimit: WaitLimit): Promise<HttpAnswer> {
    const { serviceId, exportToken } = this.#options;
    const headers = { Authorization: `Bearer ${exportToken.reveal()}`, 'Accept-Encoding': 'gzip' };
    const [path, body] = pathAndBodyOf(request);
    try {
      const outgoing = operationRequest(path, serviceId, headers, body);
      return await waitLimit.waitFor(this.#transport.send(outgoing, waitLimit.signal));
    } catch (error) {
      waitLimit.callerSignal.throwIfAborted();
      if (error instanceof UserError) throw error;
      throw new InterruptedExport(this.#failureOfError(error, 'base_url'), error);
    }
  }

  /** Classifies an answer by its status and first bytes; reads the body of one that is not data. */
  async #classify(httpAnswer: HttpAnswer, waitLimit: WaitLimit) {
    const { status, headers } = httpAnswer;
    const bytes = httpAnswer.bytes(waitLimit);
    try {
      const { mayBeCsv, stream } = status === 200 ? await peekBody(bytes) : { mayBeCsv: false, stream: bytes };
      // What came before a failure may name its reason.
      if (!mayBeCsv) return this.#failureOfAnswer(httpAnswer, await firstBytes(stream, { keepsPart: true }));
      checkCharset(headers);
      return { kind: 'data', stream: this.#csvStream(stream, waitLimit.callerSignal) } as const;
    } catch (error) {
      return this.#failureOfError(error);
    }
  }

  /** What an answer that is not data means. */
  #failureOfAnswer({ status }: HttpAnswer, startBytes: Buffer): RequestFailure {
    const traits: ExportTraits = {
      status,
      content: contentOf(startBytes),
      reason: reasonIn(startBytes.toString(), this.#options.exportToken.reveal()),
      host: this.#transport.host,
    };
    const { kind, code = traits.reason ?? 'no_reason', clause } = matchOutcome(EXPORT_OUTCOMES, traits);
    return { kind, code, clause };
  }

  /** The stream of a body, whose errors become an InterruptedExport. */
  async *#csvStream(stream: ByteStream, signal: AbortSignal): ByteStream {
    try {
      yield* stream;
    } catch (error) {
      signal.throwIfAborted();
      throw new InterruptedExport(this.#failureOfError(error), error);
    }
  }

  /** What it means that no answer came, or no whole body. `addressKey`: as of `networkProblem`. Throws a defect. */
  #failureOfError(error: unknown, addressKey?: string): RequestFailure {
    const { host } = this.#transport;
    if (error instanceof TimeLimitReached) {
      const clause = `${host} sent nothing for ${formatDuration(error.afterMs)}`;
      return { kind: 'retry_or_split', code: 'stall', clause };
    }
    // Every error of a connection has a code.
    if (codeOf(error) === undefined) throw error;
    const { needsUser, code, clause } = networkProblem(error, host, addressKey);
    if (error instanceof BodyMismatch && !error.isBroken) return { kind: 'unsupported', code, clause };
    return { kind: needsUser ? 'config' : 'retry', code, clause };
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
