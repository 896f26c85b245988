import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Clock, HOUR_MS } from '../base/clock.ts';
import { Dataset } from './dataset.ts';
import type { Operation, PlannedAnswer, Scenario } from './scenario.ts';

/** What all requests share: the scenario, the data, the limit of exports and the counts. */
export class SimulatedService {
  readonly scenario: Scenario;
  readonly clock: Clock;
  readonly dataset: Dataset;
  readonly #counts = { export: 0, profiles: 0, delete: 0 };
  /** The end (ms UTC) of the hour of the limit. The first export after it begins the next hour. */
  #hourEnd = 0;
  #exportsLeft = 0;

  constructor(scenario: Scenario, clock: Clock) {
    this.scenario = scenario;
    this.clock = clock;
    this.dataset = new Dataset(scenario.service_id, scenario.events_per_day);
  }

  /** Counts an export of events or profiles; false if the hour has none left. */
  tryCountExport(): boolean {
    const now = this.clock.now();
    if (now >= this.#hourEnd) {
      this.#hourEnd = now + HOUR_MS;
      this.#exportsLeft = this.scenario.exports_per_hour ?? Number.POSITIVE_INFINITY;
    }
    if (this.#exportsLeft === 0) return false;
    this.#exportsLeft--;
    return true;
  }

  /** The limit headers of exports; none if there is no limit. */
  limitHeaders(): HeaderFields {
    if (this.scenario.exports_per_hour === undefined) return {};
    return {
      // The service gives the cycle here, and no number.
      'x-ratelimit-limit': '1h',
      'x-ratelimit-remaining': String(this.#exportsLeft),
      'x-ratelimit-reset': String(this.#hourEnd),
    };
  }

  /** Counts a request that the limit lets through. Gives the scenario's answer to it, once that is due. */
  async awaitPlannedAnswer(operation: Operation, signal: AbortSignal, id?: string): Promise<Partial<PlannedAnswer>> {
    const requestNumber = ++this.#counts[operation];
    const plannedAnswer = this.scenario.answers.find((answer) => {
      const isNth = answer.nth === undefined || answer.nth.includes(requestNumber);
      const isId = answer.external_id === undefined || answer.external_id === id;
      return answer.operation === operation && isNth && isId;
    });
    await this.clock.sleep(plannedAnswer?.latency_ms ?? 0, signal);
    return plannedAnswer ?? {};
  }
}

/** One request and its answer. */
export interface Exchange {
  readonly service: SimulatedService;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly serviceId: string | null;
  /** Parsed JSON; undefined for another body. */
  readonly body: unknown;
  /** Aborted when the connection is closed or the answer is over. */
  readonly signal: AbortSignal;
}

export type HeaderFields = Readonly<Record<string, string>>;

export function answerJson({ res }: Exchange, status: number, value: unknown, headers: HeaderFields = {}): void {
  const body = Buffer.from(JSON.stringify(value));
  res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': body.length, ...headers });
  res.end(body);
}

/** Answers with a failure in the provider's form. */
export function answerFailure(exchange: Exchange, status: number, message: string, headers: HeaderFields = {}): void {
  answerJson(exchange, status, { result: 'fail', message }, headers);
}

export const retryAfterHeader = (seconds: number | undefined): HeaderFields =>
  seconds === undefined ? {} : { 'Retry-After': String(seconds) };
