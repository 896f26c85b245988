import type { Scenario } from '../scenario.ts';
import type { Column } from './column.ts';
import { customColumns, extraColumns, hostileColumns, ownColumns } from './custom-column.ts';
import { hashText } from './hash.ts';
import { itemColumns, standardColumns, systemColumns } from './standard-column.ts';

/** Every column there can be, in the order of the header: by UTF-16 code units. A column of the scenario's own replaces its namesake. */
export function columnsOf(scenario: Scenario): readonly Column[] {
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
