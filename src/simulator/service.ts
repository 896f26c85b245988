import type { Clock } from '../base/clock.ts';
import { createDataset, type Dataset } from './data/dataset.ts';
import type { ServedFiles } from './export/serve-file.ts';
import { FaultRules } from './fault.ts';
import { RequestWindow } from './limit.ts';
import { RequestLog } from './request-log.ts';
import type { Scenario } from './scenario.ts';

export interface Tokens {
  readonly export: string;
  readonly import: string;
}

/** The service behind the HTTP: what it knows, counts and remembers. */
export class Service {
  readonly clock: Clock;
  readonly serviceId: string;
  readonly log = new RequestLog();
  readonly latencyMs: number;
  readonly files: ServedFiles | undefined;
  readonly seed: number | string;
  readonly deletedUsers = new Set<number>();
  readonly exportWindow = new RequestWindow(3_600_000);
  readonly deleteWindow = new RequestWindow(60_000);
  runningExports = 0;
  tokens: Tokens;
  scenario: Scenario;
  dataset: Dataset;
  rules: FaultRules;

  constructor(parts: Pick<Service, 'clock' | 'serviceId' | 'latencyMs' | 'files' | 'seed' | 'tokens' | 'scenario'>) {
    this.clock = parts.clock;
    this.serviceId = parts.serviceId;
    this.latencyMs = parts.latencyMs;
    this.files = parts.files;
    this.seed = parts.seed;
    this.tokens = parts.tokens;
    this.scenario = parts.scenario;
    this.dataset = createDataset(this);
    this.rules = new FaultRules(parts.scenario.faults, this.dataset.seed);
  }

  setScenario(scenario: Scenario, hasNewFaults: boolean): void {
    this.scenario = scenario;
    this.dataset = createDataset(this);
    if (hasNewFaults) this.rules = new FaultRules(scenario.faults, this.dataset.seed);
  }
}
