// This folder: the events that the embedded service makes up: each row is a pure function of the scenario.

import type { Scenario } from '../scenario.ts';
import { columnsOf } from './catalog.ts';
import type { Column } from './column.ts';
import type { DatasetParameters } from './dataset-parameters.ts';
import { hashText } from './hash.ts';
import { createStamps } from './stamp.ts';

const MS_PER_HOUR = 3_600_000;

/** What an export is made from. Holds no row: each is computed when it is asked for. */
export interface Dataset extends DatasetParameters {
  readonly columns: readonly Column[];
}

export interface DatasetOptions {
  readonly seed: number | string;
  readonly serviceId: string;
  readonly scenario: Scenario;
  readonly forgotten: ReadonlySet<number>;
}

export function createDataset(options: DatasetOptions): Dataset {
  const { scenario, serviceId, forgotten } = options;
  const seed = hashText(String(options.seed));
  const stamps = createStamps(scenario.days.cell_zone_hours * MS_PER_HOUR);
  return { seed, serviceId, scenario, stamps, forgotten, columns: columnsOf(scenario) };
}
