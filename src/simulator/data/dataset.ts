// This folder: the events that the embedded service makes up: each row is a pure function of the scenario.

import type { Scenario } from '../scenario.ts';
import {
  type Column,
  customColumns,
  extraColumns,
  hostileColumns,
  itemColumns,
  ownColumns,
  standardColumns,
  systemColumns,
} from './columns.ts';
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
  readonly forgotten: ReadonlySet<number>;
}

export function createDataset(options: DatasetOptions): Dataset {
  const { scenario, serviceId, forgotten } = options;
  const seed = hashText(String(options.seed));
  const stamps = createStamps(scenario.days.cell_zone_hours * MS_PER_HOUR);
  return { seed, serviceId, scenario, stamps, forgotten, columns: columnsOf(scenario) };
}

/** Every column there can be, in the order of the header: by UTF-16 code units. A column of the scenario's own replaces its namesake. */
function columnsOf(scenario: Scenario): readonly Column[] {
  const own = ownColumns(scenario);
  const replaced = new Set(own.map((one) => one.name));
  const others = [
    ...systemColumns(scenario),
    ...standardColumns,
    ...itemColumns,
    ...customColumns(scenario),
    ...(scenario.columns.hostile_names ? hostileColumns : []),
    ...extraColumns(scenario.columns.extra),
  ].filter((one) => !replaced.has(one.name));
  return [...others, ...own].map((one) => ({ ...one, salt: hashText(one.name) })).sort(byName);
}

const byName = (a: Column, b: Column) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
