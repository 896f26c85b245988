// This folder: the events that the embedded service makes up: each row is a pure function of the scenario.

import type { Scenario } from '../scenario.ts';
import { type Column, columnsOf } from './columns.ts';
import { createStamps, type DatasetParameters } from './event.ts';
import { hashText } from './hash.ts';

const MS_PER_HOUR = 3_600_000;

/** What an export is made from. Holds no row: each is computed when it is asked for. */
export interface Dataset extends DatasetParameters {
  readonly columns: readonly Column[];
}

export interface DatasetOptions {
  readonly seed: number | string;
  readonly serviceId: string;
  readonly scenario: Scenario;
  readonly deletedUsers: ReadonlySet<number>;
}

export function createDataset({ seed, serviceId, scenario, deletedUsers }: DatasetOptions): Dataset {
  const stamps = createStamps(scenario.days.cell_zone_hours * MS_PER_HOUR);
  return { seed: hashText(String(seed)), serviceId, scenario, stamps, deletedUsers, columns: columnsOf(scenario) };
}
