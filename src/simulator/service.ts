import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.ts';
import { HOUR_MS } from '../base/durations.ts';
import { Dataset } from './dataset.ts';
import type { Operation, PlannedAnswer, Scenario } from './scenario.ts';

/** What all requests share: the scenario, the data, the limits and the counts. */
export class SimulatedService {
  readonly scenario: Scenario;
  readonly clock: Clock;
  readonly dataset: Dataset;
  /** An export of profiles counts as an export. */
  readonly limits: Readonly<Record<'export' | 'delete', RequestLimit>>;
  runningExports = 0;
  readonly #count = { export: 0, profiles: 0, delete: 0 };

  constructor(scenario: Scenario, clock: Clock) {
    this.scenario = scenario;
    this.clock = clock;
    this.dataset = new Dataset(scenario);
    this.limits = {
      export: new RequestLimit(clock, '1h', HOUR_MS, scenario.exports_per_hour),
      delete: new RequestLimit(clock, '1m', HOUR_MS / 60, scenario.deletions_per_minute),
    };
  }

  /** Counts a request that the limits let through, and gives the answer that the scenario has for it. */
  takePlannedAnswer(operation: Operation, externalId?: string): PlannedAnswer | undefined {
    const n = ++this.#count[operation];
    return this.scenario.answers.find((answer) => {
      const isNth = answer.nth === undefined || answer.nth.includes(n);
      const isId = answer.external_id === undefined || answer.external_id === externalId;
      return answer.operation === operation && isNth && isId;
    });
  }
}

/** Counts the requests of one group in cycles. A new one begins with the first request or answer after the last. */
class RequestLimit {
  readonly #clock: Clock;
  /** The cycle as the headers name it, and its length (ms). */
  readonly #cycle: string;
  readonly #cycleMs: number;
  /** Requests in a cycle; undefined: no limit. */
  readonly #limit: number | undefined;
  #cycleStart = 0;
  #count = 0;

  constructor(clock: Clock, cycle: string, cycleMs: number, limit: number | undefined) {
    this.#clock = clock;
    this.#cycle = cycle;
    this.#cycleMs = cycleMs;
    this.#limit = limit;
  }

  /** Counts a request; false if the limit is reached. */
  take(): boolean {
    const hasRoom = this.#remaining() > 0;
    if (hasRoom) this.#count++;
    return hasRoom;
  }

  /** The limit headers; none if there is no limit. */
  headers(): Record<string, string> {
    if (this.#limit === undefined) return {};
    return {
      'x-ratelimit-limit': this.#cycle,
      'x-ratelimit-remaining': String(this.#remaining()),
      'x-ratelimit-reset': String(this.#cycleStart + this.#cycleMs),
    };
  }

  #remaining(): number {
    const now = this.#clock.now();
    if (now >= this.#cycleStart + this.#cycleMs) {
      this.#cycleStart = now;
      this.#count = 0;
    }
    return (this.#limit ?? Number.POSITIVE_INFINITY) - this.#count;
  }
}

/** One request and its answer. */
export interface Exchange {
  readonly service: SimulatedService;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly serviceId: string | null;
  /** Parsed JSON; undefined if the body or its content type is something else. */
  readonly body: unknown;
  /** Aborted when the connection is closed or the answer is over. */
  readonly closed: AbortSignal;
}

export function answerJson({ res }: Exchange, status: number, value: unknown, headers: Record<string, string> = {}) {
  const body = Buffer.from(JSON.stringify(value));
  res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': body.length, ...headers });
  res.end(body);
}

/** Answers with a failure in the provider's form. */
export function fail(exchange: Exchange, status: number, message: string, headers: Record<string, string> = {}): void {
  answerJson(exchange, status, { result: 'fail', message }, headers);
}

export const retryAfter = (seconds: number | undefined): Record<string, string> =>
  seconds === undefined ? {} : { 'Retry-After': String(seconds) };
