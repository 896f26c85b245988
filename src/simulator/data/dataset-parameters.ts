import type { Scenario } from '../scenario.ts';
import type { Stamps } from './stamp.ts';

/** All that a cell is a function of, together with its column and its row. */
export interface DatasetParameters {
  readonly seed: number;
  readonly serviceId: string;
  readonly scenario: Scenario;
  readonly stamps: Stamps;
  /** Users (by number) whose events are no longer exported. */
  readonly forgotten: ReadonlySet<number>;
}
