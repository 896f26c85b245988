// This folder: the export operation: one request, its answer, and what the answer means.

import type { Clock } from '../../base/clock.ts';
import { type Env, systemEnv } from '../../base/env.ts';
import { UserError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { SourceConfig } from '../../config/source.ts';
import {
  bodyError,
  bodyProblem,
  bytesOf,
  codingOf,
  declaredLength,
  IdleTimeout,
  Stalled,
  snippet,
} from '../http/body.ts';
import { type LimitHeaders, oneOf, readDate, readLimits } from '../http/headers.ts';
import { networkProblem } from '../http/network.ts';
import { type RawAnswer, Transport } from '../http/transport.ts';
import type { ExportAdmission, Permit } from '../quota.ts';
import {
  type AnswerForm,
  type ExportAnswer,
  type ExportBody,
  type ExportRefusal,
  type ExportRequest,
  type ExportService,
  exportPost,
} from './answer.ts';
import { contentOf, originOf, peekBody, reasonIn } from './content.ts';
import { type AnswerFacts, exportOutcome } from './outcomes.ts';

export interface ExportServiceOptions extends Pick<SourceConfig, 'baseUrl' | 'serviceId' | 'exportToken' | 'stallMs'> {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly quota: ExportAdmission;
  /** Where HTTPS_PROXY and NO_PROXY are looked up; default the process's environment. */
  readonly env?: Env;
  /** Called whenever a connection is established. */
  readonly onConnect?: () => void;
}

/**
 * The export operation over HTTP: one request and its answer, classified by `outcomes.ts`; retries are the caller's.
 * `close` closes every connection and releases the quota's permits.
 */
export function createExportService(options: ExportServiceOptions): ExportService & { close(): Promise<void> } {
  return new ExportClient(options);
}

const NO_LIMITS: LimitHeaders = { remaining: undefined, resetAt: undefined, retryAt: undefined };

/** One request under way, and what has to be released when it ends. */
interface Exchange {
  readonly permit: Permit;
  readonly idleTimeout: IdleTimeout;
  isOver: boolean;
}

class ExportClient implements ExportService {
  readonly #options: ExportServiceOptions;
  readonly #transport: Transport;
  sent = 0;

  constructor(options: ExportServiceOptions) {
    this.#options = options;
    this.#transport = new Transport({
      baseUrl: options.baseUrl,
      env: options.env ?? systemEnv,
      clock: options.clock,
      keptConnections: 0,
      onConnect: options.onConnect,
    });
  }

  async close(): Promise<void> {
    await this.#transport.close();
    await this.#options.quota.close();
  }

  async exportEvents(request: ExportRequest, signal: AbortSignal, wanted: AnswerForm = {}): Promise<ExportAnswer> {
    const { serviceId, exportToken, clock, stallMs, quota } = this.#options;
    const post = exportPost(request, serviceId, exportToken, wanted.uncompressed);
    const permit = await quota.enter(signal);
    const exchange: Exchange = { permit, idleTimeout: new IdleTimeout(clock, stallMs, signal), isOver: false };
    try {
      this.sent++;
      const sending = this.#transport.send(post, exchange.idleTimeout.signal);
      return await this.#classify(await exchange.idleTimeout.waitFor(sending), exchange);
    } catch (error) {
      await this.#release(exchange);
      signal.throwIfAborted();
      if (error instanceof UserError) throw error;
      return { ...this.#refusalFor(error, undefined), limits: NO_LIMITS, serverTime: undefined };
    }
  }

  /** Classifies an answer by its status and first bytes. Data stays open; anything else is read, and its connection closed. */
  async #classify(answer: RawAnswer, exchange: Exchange): Promise<ExportAnswer> {
    const limits = readLimits(answer.headers, this.#options.clock.now());
    const common = { limits, serverTime: readDate(answer.headers) };
    const outcome = await this.#outcome(answer, exchange).catch((error: unknown) =>
      this.#refusalFor(error, answer.status),
    );
    await exchange.permit.answered({ status: answer.status, limited: outcome.kind === 'wait', limits });
    if (outcome.kind !== 'data' || isAborted(exchange.idleTimeout)) await this.#release(exchange, answer);
    if (isAborted(exchange.idleTimeout)) throw exchange.idleTimeout.signal.reason;
    return { ...outcome, ...common };
  }

  async #outcome(answer: RawAnswer, exchange: Exchange): Promise<ExportBody | ExportRefusal> {
    const { host } = this.#transport;
    const { status } = answer;
    const bytes = bytesOf(answer, exchange.idleTimeout);
    const reading = { clock: this.#options.clock, signal: exchange.idleTimeout.signal };
    if (status !== 200) return this.#refused(answer, await snippet(bytes, reading));
    if (codingOf(answer) === undefined) {
      const message = `${host} compressed its answer in a way that was not requested`;
      return { kind: 'retry', code: 'content_encoding', message, status };
    }
    const body = await peekBody(bytes);
    const content = contentOf(body.first, body.isAll) ?? 'other';
    if (content === 'json' || content === 'html') {
      return this.#refused(answer, await snippet(body.bytes, reading));
    }
    return this.#data(answer, body.bytes, exchange);
  }

  #refused(answer: RawAnswer, body: Buffer): ExportRefusal {
    const { exportToken, baseUrl } = this.#options;
    const reason = reasonIn(body.toString('utf8'), exportToken.reveal());
    const facts: AnswerFacts = {
      status: answer.status,
      content: contentOf(body, true) ?? 'other',
      reason,
      host: this.#transport.host,
      location: originOf(oneOf(answer.headers.location), baseUrl),
    };
    const { kind, code, message } = exportOutcome(facts);
    return { kind, code: code ?? reason ?? 'no_reason', message: message(facts), status: answer.status };
  }

  #data(answer: RawAnswer, bytes: AsyncIterable<Uint8Array>, exchange: Exchange): ExportBody {
    const { host } = this.#transport;
    const close = () => this.#release(exchange, answer);
    return {
      kind: 'data',
      bytes: withFailures(bytes, host, exchange.idleTimeout, close),
      endDeclared: codingOf(answer) === 'identity' && declaredLength(answer) !== undefined,
      close,
    };
  }

  async #release(exchange: Exchange, answer?: RawAnswer): Promise<void> {
    answer?.disconnect();
    if (exchange.isOver) return;
    exchange.isOver = true;
    exchange.idleTimeout.end();
    await exchange.permit.release();
  }

  /** A failure before the first byte of data. */
  #refusalFor(error: unknown, status: number | undefined): ExportRefusal {
    const { host } = this.#transport;
    if (error instanceof Stalled) return { kind: 'retry_or_split', ...bodyProblem(error, host), status };
    if (status !== undefined) return { kind: 'retry', ...bodyProblem(error, host), status };
    const { config, code, message } = networkProblem(error, host);
    return { kind: config ? 'config' : 'retry', code, message, status };
  }
}

/** The same bytes; an error of the body becomes a UserError whose `internal` starts with its code. Releases everything at the end. */
async function* withFailures(
  bytes: AsyncIterable<Uint8Array>,
  host: string,
  idleTimeout: IdleTimeout,
  close: () => Promise<void>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* bytes;
  } catch (error) {
    if (isAborted(idleTimeout)) throw idleTimeout.signal.reason;
    throw bodyError(error, host);
  } finally {
    await close();
  }
}

/** True when the caller aborted; false for a stall. */
const isAborted = ({ signal }: IdleTimeout): boolean => signal.aborted && !(signal.reason instanceof Stalled);
