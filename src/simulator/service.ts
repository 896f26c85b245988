import type { Clock } from '../base/clock.ts';
import { HOUR_MS } from '../base/durations.ts';
import { Dataset } from './data/dataset.ts';
import { RequestLimit } from './request-limit.ts';
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
  takePlannedAnswer(operation: Operation, externalId?: string): PlannedAnswer | undefined {
    const n = ++this.#count[operation];
    return this.scenario.answers.find((answer) => {
      const isNth = answer.nth === undefined || answer.nth.includes(n);
      const isId = answer.external_id === undefined || answer.external_id === externalId;
      return answer.operation === operation && isNth && isId;
    });
  }
}
