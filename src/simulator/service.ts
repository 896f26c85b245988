import type { Clock } from '../base/clock.ts';
import { Dataset } from './data/dataset.ts';
import { RequestLimit } from './limit.ts';
import type { Answer, Operation, Scenario } from './scenario.ts';

/** The state of the service behind HTTP: its data and its counts. */
export class Service {
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
      export: new RequestLimit(clock, 'export', scenario.exports_per_hour),
      delete: new RequestLimit(clock, 'delete', scenario.deletions_per_minute),
    };
  }

  /** Counts a request, and gives the answer that the scenario has for it. */
  answerOf(operation: Operation, externalId?: string): Answer | undefined {
    const n = ++this.#count[operation];
    return this.scenario.answers.find((answer) => {
      const isNth = answer.nth === undefined || answer.nth.includes(n);
      const isId = answer.external_id === undefined || answer.external_id === externalId;
      return answer.operation === operation && isNth && isId;
    });
  }
}
