import type { Clock } from '../../base/clock.ts';
import { type Env, systemEnv } from '../../base/env.ts';
import { Failure } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { SourceConfig } from '../../config/source.ts';
import { bodyFailure, bytesOf, codingOf, declaredLength, Patience, Stalled, troubleOf } from '../http/body.ts';
import { type LimitHeaders, oneOf, readDate, readLimits } from '../http/headers.ts';
import { judgeNetwork } from '../http/network.ts';
import { snippet } from '../http/snippet.ts';
import { type RawAnswer, Transport } from '../http/transport.ts';
import type { ExportGate, Place } from '../quota/gate.ts';
import { contentOf, originOf, reasonIn, rowFor } from './judge.ts';
import { openingOf } from './opening.ts';
import { type AnswerFacts, EXPORT_OUTCOMES } from './outcomes.ts';
import { exportPost } from './request.ts';
import type { ExportAnswer, ExportBody, ExportQuestion, ExportRefusal, ExportService } from './service.ts';

export interface ExportServiceOptions extends Pick<SourceConfig, 'baseUrl' | 'serviceId' | 'exportToken' | 'stallMs'> {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly quota: ExportGate;
  /** Where HTTPS_PROXY and NO_PROXY are looked up; default the process's environment. */
  readonly env?: Env;
  /** Told whenever a connection stands. */
  readonly onConnect?: () => void;
}

/** The export operation over HTTP. `close` lets go of every connection and of the quota's places. */
export function createExportService(options: ExportServiceOptions): ExportService & { close(): Promise<void> } {
  const client = new ExportClient(options);
  return {
    exportEvents: (question, signal) => client.exportEvents(question, signal),
    get sent() {
      return client.sent;
    },
    close: () => client.close(),
  };
}

const NO_LIMITS: LimitHeaders = { remaining: undefined, resetAt: undefined, retryAt: undefined };

/** One export under way: everything that has to be let go of. */
interface Course {
  readonly place: Place;
  readonly patience: Patience;
  isOver: boolean;
}

class ExportClient {
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

  async exportEvents(question: ExportQuestion, signal: AbortSignal): Promise<ExportAnswer> {
    const { serviceId, exportToken, clock, stallMs, quota } = this.#options;
    const post = exportPost(question, serviceId, exportToken);
    const place = await quota.enter(signal);
    const course: Course = { place, patience: new Patience(clock, stallMs, signal), isOver: false };
    try {
      this.sent++;
      const sending = this.#transport.send(post, course.patience.signal);
      return await this.#judge(await course.patience.of(sending), course);
    } catch (error) {
      await this.#letGo(course);
      signal.throwIfAborted();
      if (error instanceof Failure) throw error;
      return { ...this.#refusalFor(error, undefined), limits: NO_LIMITS, serverTime: undefined };
    }
  }

  /** Takes an answer to pieces as far as its first bytes: data stays open, everything else is read and hung up on. */
  async #judge(answer: RawAnswer, course: Course): Promise<ExportAnswer> {
    const limits = readLimits(answer.headers, this.#options.clock.now());
    const common = { limits, serverTime: readDate(answer.headers) };
    const judged = await this.#outcome(answer, course).catch((error: unknown) =>
      this.#refusalFor(error, answer.status),
    );
    await course.place.answered({ status: answer.status, limited: judged.kind === 'wait', limits });
    if (judged.kind !== 'data' || isAbortOf(course.patience)) await this.#letGo(course, answer);
    if (isAbortOf(course.patience)) throw course.patience.signal.reason;
    return { ...judged, ...common };
  }

  async #outcome(answer: RawAnswer, course: Course): Promise<ExportBody | ExportRefusal> {
    const { host } = this.#transport;
    const { status } = answer;
    const bytes = bytesOf(answer, course.patience);
    if (status !== 200) return this.#refused(answer, await snippet(bytes, this.#options.clock));
    if (codingOf(answer) === undefined) {
      const message = `${host} compressed its answer in a way that nobody asked for`;
      return { kind: 'retry', code: 'content_encoding', message, status };
    }
    const opening = await openingOf(bytes);
    const content = contentOf(opening.first, opening.isAll) ?? 'other';
    if (content === 'json' || content === 'html') {
      return this.#refused(answer, await snippet(opening.bytes, this.#options.clock));
    }
    return this.#data(answer, opening.bytes, course);
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
    const { kind, code, say } = rowFor(EXPORT_OUTCOMES, facts);
    return { kind, code: code ?? reason ?? 'no_reason', message: say(facts), status: answer.status };
  }

  #data(answer: RawAnswer, bytes: AsyncIterable<Uint8Array>, course: Course): ExportBody {
    const { host } = this.#transport;
    const close = () => this.#letGo(course, answer);
    return {
      kind: 'data',
      bytes: named(bytes, host, course.patience, close),
      endDeclared: codingOf(answer) === 'gzip' || declaredLength(answer) !== undefined,
      close,
    };
  }

  async #letGo(course: Course, answer?: RawAnswer): Promise<void> {
    answer?.hangUp();
    if (course.isOver) return;
    course.isOver = true;
    course.patience.end();
    await course.place.leave();
  }

  /** A failure before the first byte of data. */
  #refusalFor(error: unknown, status: number | undefined): ExportRefusal {
    const { host } = this.#transport;
    if (error instanceof Stalled) return { kind: 'retry_or_split', ...troubleOf(error, host), status };
    if (status !== undefined) return { kind: 'retry', ...troubleOf(error, host), status };
    const { config, code, message } = judgeNetwork(error, host);
    return { kind: config ? 'config' : 'retry', code, message, status };
  }
}

/** The same bytes; whatever breaks them off is a Failure with a name. Lets go of everything at the end. */
async function* named(
  bytes: AsyncIterable<Uint8Array>,
  host: string,
  patience: Patience,
  close: () => Promise<void>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* bytes;
  } catch (error) {
    if (isAbortOf(patience)) throw patience.signal.reason;
    throw bodyFailure(error, host);
  } finally {
    await close();
  }
}

/** True when it was the caller that wanted an end. */
const isAbortOf = ({ signal }: Patience): boolean => signal.aborted && !(signal.reason instanceof Stalled);
