import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.ts';
import { HOUR_MS } from '../base/durations.ts';
import { Dataset } from './data/dataset.ts';
import type { Operation, PlannedAnswer, Scenario } from './scenario.ts';

/** The state of the service behind HTTP: its data and its counts. */
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
      export: new RequestLimit(clock, { name: '1h', ms: HOUR_MS }, scenario.exports_per_hour),
      delete: new RequestLimit(clock, { name: '1m', ms: HOUR_MS / 60 }, scenario.deletions_per_minute),
    };
  }

  /** Counts a request, and gives the answer that the scenario has for it. */
  answerOf(operation: Operation, externalId?: string): PlannedAnswer | undefined {
    const n = ++this.#count[operation];
    return this.scenario.answers.find((answer) => {
      const isNth = answer.nth === undefined || answer.nth.includes(n);
      const isId = answer.external_id === undefined || answer.external_id === externalId;
      return answer.operation === operation && isNth && isId;
    });
  }
}

/** The cycle of a limit as the headers name it, and its length. */
interface Cycle {
  readonly name: string;
  readonly ms: number;
}

/** Counts the requests of one group in cycles, each of which begins with its first request. */
class RequestLimit {
  readonly #clock: Clock;
  readonly #most: number | undefined;
  readonly #cycle: Cycle;
  #began = 0;
  #count = 0;

  constructor(clock: Clock, cycle: Cycle, most: number | undefined) {
    this.#clock = clock;
    this.#cycle = cycle;
    this.#most = most;
  }

  /** Counts a request; false if the limit is reached. */
  take(): boolean {
    this.#begin();
    if (this.#most !== undefined && this.#count >= this.#most) return false;
    this.#count++;
    return true;
  }

  #begin(): void {
    const now = this.#clock.now();
    if (now < this.#began + this.#cycle.ms) return;
    this.#began = now;
    this.#count = 0;
  }

  /** The limit headers; none if there is no limit. */
  headers(): Record<string, string> {
    if (this.#most === undefined) return {};
    this.#begin();
    return {
      'x-ratelimit-limit': this.#cycle.name,
      'x-ratelimit-remaining': String(Math.max(0, this.#most - this.#count)),
      'x-ratelimit-reset': String(this.#began + this.#cycle.ms),
    };
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
