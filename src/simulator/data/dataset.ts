import { type Day, daysOf } from '../../base/days.ts';
import type { Scenario } from '../scenario.ts';
import { COLUMNS, type Column } from './columns.ts';
import { type EventRow, eventAt, kindsWhere, simulateDay } from './event.ts';
import { hashText, mix } from './hashing.ts';
import { memberNumber, profileOf, USERS } from './profiles.ts';

/** A filter by names: `all`, only these, or all but these. */
export interface NameFilter {
  readonly condition: 'all' | 'include' | 'exclude';
  readonly names: ReadonlySet<string>;
}

/** The requested rows: days by the service's own count, both included, as they are at `now` (ms UTC). */
export interface RowQuery {
  readonly from: Day;
  readonly last: Day;
  readonly events: NameFilter;
  readonly properties: NameFilter;
  readonly now: number;
}

type DatasetOptions = Pick<Scenario, 'seed' | 'service_id' | 'events_per_day' | 'days'>;

export const allows = ({ condition, names }: NameFilter, name: string): boolean =>
  condition === 'all' || names.has(name) === (condition === 'include');

/** The data of all exports. It holds no row: each row is computed when it is requested. */
export class Dataset {
  readonly #options: DatasetOptions;
  readonly #seed: number;
  readonly #deletedUsers = new Set<number>();

  constructor(options: DatasetOptions) {
    this.#options = options;
    this.#seed = hashText(options.seed);
  }

  /** Removes the profile and all events of the user with this external id, if there is one. */
  deleteUser(externalId: string): void {
    const user = Number(externalId);
    if (memberNumber(user) === externalId) this.#deletedUsers.add(user);
  }

  /** The profile of each user, as it is now. */
  *profiles(): Generator<Readonly<Record<string, string>>> {
    for (let user = 0; user < USERS; user++) {
      if (!this.#deletedUsers.has(user)) yield profileOf(user, this.#seed);
    }
  }

  /** The rows of a query in the order of their arrival. */
  *rows(query: RowQuery): Generator<EventRow, void, undefined> {
    const kinds = kindsWhere(({ name }) => allows(query.events, name));
    for (const day of daysOf(query.from, query.last)) {
      const simulatedDay = simulateDay(this.#seed, day, this.#options);
      for (let i = 0; i < simulatedDay.eventCount; i++) {
        const event = eventAt(simulatedDay, i);
        if (event.server > query.now) break;
        if ((kinds & (1 << event.kind)) === 0 || this.#deletedUsers.has(event.user)) continue;
        for (let item = 0; item < event.rowCount; item++) yield { ...event, item };
      }
    }
  }

  /** The header of an export: columns of the system, and those with a value in any row, by name. */
  header(query: RowQuery): Column[] {
    const columns = COLUMNS.filter((column) => column.isSystem || allows(query.properties, column.name));
    const emptyColumns = new Set(columns.filter((column) => !column.isSystem));
    for (const row of emptyColumns.size > 0 ? this.rows(query) : []) {
      for (const column of emptyColumns) if (this.cell(column, row) !== '') emptyColumns.delete(column);
      if (emptyColumns.size === 0) break;
    }
    return columns.filter((column) => !emptyColumns.has(column));
  }

  /** The text of a cell; empty if the row has no such value. */
  cell(column: Column, row: EventRow): string {
    const { day, hash, kind, item } = row;
    const context = { seed: this.#seed, serviceId: this.#options.service_id };
    const cellHash = mix(hash, column.salt);
    if (column.isSystem) return column.textOf(row, cellHash, context);
    if ((column.kinds & (1 << kind)) === 0 || mix(day.hash, column.salt) % 256 >= column.daysOf256) return '';
    const valueHash = column.grain === 'item' ? mix(cellHash, item) : cellHash;
    return (valueHash & 0xff) < column.rowsOf256 ? column.textOf(row, valueHash, context) : '';
  }
}
