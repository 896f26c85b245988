import { type Day, daysOf } from '../../base/days.ts';
import { DAY_MS } from '../../base/durations.ts';
import type { Column, Dataset } from './columns.ts';
import {
  type DayPlan,
  daysTouching,
  EVENT_KINDS,
  eventAt,
  ITEM_EVENTS,
  instantOf,
  MAX_ITEMS,
  planDay,
  type Row,
  UNNAMED,
} from './event.ts';
import { mix, within } from './hash.ts';

/** A filter by names: `all`, only these, or all but these. */
export interface NameFilter {
  readonly condition: 'all' | 'include' | 'exclude';
  readonly names: ReadonlySet<string>;
}

export const EVERYTHING: NameFilter = { condition: 'all', names: new Set() };

/** The requested rows: days by the service's own count, both included, as they are at `now` (ms UTC). */
export interface RowQuery {
  readonly from: Day;
  readonly last: Day;
  readonly events: NameFilter;
  readonly properties: NameFilter;
  readonly now: number;
}

export const isFiltered = ({ condition, names }: NameFilter): boolean => condition !== 'all' && names.size > 0;

const allows = (filter: NameFilter, name: string): boolean =>
  !isFiltered(filter) || filter.names.has(name) === (filter.condition === 'include');

/** Bits of the kinds of event that a filter selects. A row without a name is equal to no name, as in SQL. */
function selectedKinds(filter: NameFilter): number {
  const unnamed = isFiltered(filter) ? 0 : 1 << UNNAMED;
  return EVENT_KINDS.reduce((mask, kind, i) => (allows(filter, kind.name) ? mask | (1 << i) : mask), unnamed);
}

/** The rows of a query, in the scenario's order. */
export function* rowsOf(dataset: Dataset, query: RowQuery): Generator<Row, void, undefined> {
  const { rows, ids } = dataset.scenario;
  const days = plansOf(dataset, query);
  if (rows.order === 'reverse') days.reverse();
  // The items of an event are apart: all first items, then all second items, and so on.
  const isApart = rows.order === 'items_apart';
  for (let pass = 0; pass < (isApart ? MAX_ITEMS : 1); pass++) {
    for (const plan of days) {
      for (const row of eventsOf(dataset, query, plan)) {
        const end = isApart ? Math.min(pass + 1, row.items) : row.items;
        for (row.item = pass; row.item < end; row.item++) {
          yield row;
          if (within(mix(row.hash, 30 + row.item), ids.repeat_share)) yield row;
        }
      }
    }
  }
}

/** The days that may hold rows of a query; empty if the query has no day. */
function plansOf(dataset: Dataset, query: RowQuery): DayPlan[] {
  if (query.last < query.from) return [];
  const [first, last] = daysTouching(dataset.scenario, query.from, query.last);
  return daysOf(first, last).map((day) => planDay(dataset, day));
}

/** The events of one day that the query selects, each with its first item. */
function* eventsOf(dataset: Dataset, query: RowQuery, plan: DayPlan): Generator<Row, void, undefined> {
  const kinds = selectedKinds(query.events);
  const isDated = dateTest(dataset, query);
  const indexAt = orderOf(dataset, plan);
  for (let i = 0; i < plan.events; i++) {
    const row = eventAt(dataset, plan, indexAt(i), query.now);
    if (row !== undefined && (kinds & (1 << row.kind)) !== 0 && isDated(row)) yield row;
  }
}

function dateTest(dataset: Dataset, query: RowQuery): (row: Row) => boolean {
  const from = instantOf(dataset.scenario, query.from);
  const to = instantOf(dataset.scenario, query.last) + DAY_MS;
  const on = dataset.scenario.days.selects_on;
  if (on === 'server') return () => true;
  if (on === 'correction') return (row) => row.correction >= from && row.correction < to;
  return (row) => row.occurred >= from && row.occurred < to;
}

function orderOf(dataset: Dataset, plan: DayPlan): (i: number) => number {
  const count = plan.events;
  const { order } = dataset.scenario.rows;
  if (order === 'reverse') return (i) => count - 1 - i;
  if (order !== 'shuffled') return (i) => i;
  let step = 1 + Math.floor(count * 0.618);
  while (gcd(step, count) !== 1) step++;
  return (i) => (i * step + 7) % count;
}

const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));

/** The text of a cell; empty if the row has no such value. */
export function cellOf(column: Column, row: Row, dataset: Dataset): string {
  if (column.isSystem) return column.text(row, mix(row.hash, column.salt), dataset);
  const isCarried = row.kind === UNNAMED ? column.grain === 'event' : (column.events & (1 << row.kind)) !== 0;
  if (!isCarried || !isKnownOn(column, row.plan)) return '';
  const base = mix(row.cells, column.salt);
  const h = column.grain === 'item' ? mix(base, row.item) : base;
  return (h & 0xff) < column.fill ? column.text(row, h, dataset) : '';
}

/** True if a column may have a value on a day, as far as the day alone decides. */
function isKnownOn(column: Column, plan: DayPlan): boolean {
  return column.onDay ? column.onDay(plan.day) : mix(plan.hash, column.salt) % 256 < column.days;
}

/** The header of an export: columns of the system, listed ones, and those with a value in any row. */
export function headerOf(dataset: Dataset, query: RowQuery): Column[] {
  const asked = dataset.columns.filter((column) => column.isSystem || allows(query.properties, column.name));
  const seen = new Set(asked.filter((column) => column.isSystem || column.isListed));
  const kinds = selectedKinds(query.events);
  const mayCarry = ({ events, grain }: Column) =>
    (events & kinds) !== 0 && (grain === 'event' || (kinds & ITEM_EVENTS) !== 0);
  const open = asked.filter((column) => !seen.has(column) && mayCarry(column));
  for (const plan of plansOf(dataset, query)) {
    const wanted = open.filter((column) => !seen.has(column) && isKnownOn(column, plan));
    for (const column of columnsOn(dataset, query, plan, wanted)) seen.add(column);
  }
  return asked.filter((column) => seen.has(column));
}

/** The wanted columns with a value on a day; stops at the row that shows the last of them. */
function columnsOn(dataset: Dataset, query: RowQuery, plan: DayPlan, wanted: readonly Column[]): Set<Column> {
  const seen = new Set<Column>();
  let left = wanted;
  if (left.length === 0) return seen;
  for (const row of eventsOf(dataset, query, plan)) {
    for (row.item = 0; row.item < row.items; row.item++) {
      for (const column of left) if (cellOf(column, row, dataset) !== '') seen.add(column);
    }
    if (left.some((column) => seen.has(column))) left = left.filter((column) => !seen.has(column));
    if (left.length === 0) break;
  }
  return seen;
}
