// This folder: the embedded service, which shares no code with its client: both operations on loopback, with made-up
// events, for the demo, the tests and the benchmarks.

import type { Day } from '../base/days.ts';
import { countRows, type TrueRow, truthOf } from './data/csv.ts';
import { EVERYTHING, type NameFilter, type RowQuery } from './data/row-query.ts';
import type { SeenDeletion, SeenRequest } from './request-log.ts';
import type { Scenario, ScenarioPatch } from './scenario.ts';
import { listen } from './server.ts';
import { Service, type SimulatorOptions, type Tokens } from './service.ts';

export { parseScenario } from './scenario.ts';
export type { SimulatorOptions } from './service.ts';

/** The days of a truth, both included whatever the scenario's end-day rule, and a filter. */
interface TruthRange {
  readonly from: Day;
  readonly to: Day;
}

interface TruthFilter {
  readonly events?: NameFilter;
  /** Instant at which the rows are taken (ms UTC), past or future; now by default. */
  readonly at?: number;
}

export interface Simulator {
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
  /** The last 20,000 requests seen, oldest first. */
  requests(): readonly SeenRequest[];
  deletions(): readonly SeenDeletion[];
  /** Yields the existing rows, one at a time, with the raw text of every cell that has one. */
  truth(days: Day | TruthRange, filter?: TruthFilter): Iterable<TrueRow>;
  countRows(days: Day | TruthRange, filter?: TruthFilter): number;
  /**
   * Replaces keys of the scenario, section by section; new `faults` replace all of them and start counting requests at
   * zero.
   */
  setScenario(patch: ScenarioPatch): void;
  /** Reissues tokens: the old ones no longer work. */
  setTokens(tokens: Partial<Tokens>): void;
  readonly scenario: Scenario;
}

export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const service = new Service(options);
  const { url, port, close } = await listen(service, options.port ?? 0);
  const query = (days: Day | TruthRange, filter: TruthFilter = {}): RowQuery => ({
    from: typeof days === 'string' ? days : days.from,
    last: typeof days === 'string' ? days : days.to,
    events: filter.events ?? EVERYTHING,
    properties: EVERYTHING,
    now: filter.at ?? service.clock.now(),
  });
  return {
    url,
    port,
    close,
    requests: () => service.log.requests(),
    deletions: () => service.log.deletions(),
    truth: (days, filter) => ({ [Symbol.iterator]: () => truthOf(service.dataset, query(days, filter)) }),
    countRows: (days, filter) => countRows(service.dataset, query(days, filter), Number.POSITIVE_INFINITY),
    setScenario: (patch) => service.setScenario(patch),
    setTokens: (tokens) => {
      service.tokens = { ...service.tokens, ...tokens };
    },
    get scenario() {
      return service.scenario;
    },
  };
}
