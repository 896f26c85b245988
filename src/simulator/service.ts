import type { Clock } from '../base/clock.ts';
import type { Day } from '../base/days.ts';
import { createDataset, type Dataset } from './data/columns.ts';
import { hashText } from './data/hash.ts';
import { faultRules } from './fault.ts';
import { RequestLimit } from './limit.ts';
import { RequestLog } from './request-log.ts';
import { parseScenario, patchScenario, type Scenario, type ScenarioPatch } from './scenario.ts';

export interface Tokens {
  readonly export: string;
  readonly import: string;
}

export interface SimulatorOptions {
  readonly port?: number;
  readonly seed: number | string;
  readonly scenario?: Scenario | undefined;
  readonly clock: Clock;
  readonly tokens: Tokens;
  readonly serviceId: string;
  /** Approximate number of events a day; replaces the scenario's `rows.per_day`. */
  readonly rowsPerDay?: number | undefined;
  readonly latencyMs?: number;
  /**
   * The CSV of these days, sent unchanged and without filters in place of generated rows; undefined: they have none.
   */
  readonly bodyOf?: (from: Day, last: Day) => AsyncIterable<Buffer> | undefined;
}

/** The state of the service behind HTTP: its data, its counts and its log. */
export class Service {
  readonly options: SimulatorOptions;
  readonly clock: Clock;
  readonly log = new RequestLog();
  readonly deletedUsers = new Set<number>();
  readonly limits: Readonly<Record<'export' | 'delete', RequestLimit>>;
  runningExports = 0;
  tokens: Tokens;
  scenario: Scenario;
  dataset: Dataset;
  faultOf: ReturnType<typeof faultRules>;

  constructor(options: SimulatorOptions) {
    const { clock, tokens, scenario = parseScenario({}), rowsPerDay } = options;
    this.options = options;
    this.clock = clock;
    this.tokens = tokens;
    this.scenario = rowsPerDay === undefined ? scenario : patchScenario(scenario, { rows: { per_day: rowsPerDay } });
    this.limits = { export: new RequestLimit('export', this), delete: new RequestLimit('delete', this) };
    this.dataset = this.#newDataset();
    this.faultOf = faultRules(scenario.faults, this.dataset.seed);
  }

  /** New `faults` replace all of them and start counting requests at zero. */
  setScenario(patch: ScenarioPatch): void {
    this.scenario = patchScenario(this.scenario, patch);
    this.dataset = this.#newDataset();
    if (patch.faults !== undefined) this.faultOf = faultRules(this.scenario.faults, this.dataset.seed);
  }

  #newDataset(): Dataset {
    const { seed, serviceId } = this.options;
    const { scenario, deletedUsers } = this;
    return createDataset({ seed: hashText(String(seed)), serviceId, scenario, deletedUsers });
  }
}
