import { type Day, daysOf } from '../../base/days.ts';
import type { Scenario } from '../scenario.ts';
import { COLUMNS, type Column, memberNumber, profileOf } from './columns.ts';
import { type EventRow, eventAt, hashText, kindsWhere, mix, simulateDay, USERS } from './event.ts';

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
  deleteProfile(externalId: string): void {
    const user = Number(externalId);
    if (memberNumber(user) === externalId) this.#deletedUsers.add(user);
  }

  /** The profile of each user, as it is now. */
  *profiles(): Generator<Readonly<Record<string, string>>> {
    for (let user = 0; user < USERS; user++) {
      if (!this.#deletedUsers.has(user)) yield profileOf(user, this.#seed);
    }
  }

  /** The rows of a query in the order of their arrival. The same object is yielded for each row of an event. */
  *rows(query: RowQuery): Generator<EventRow, void, undefined> {
    const kinds = kindsWhere(({ name }) => allows(query.events, name));
    for (const day of daysOf(query.from, query.last)) {
      const simulated = simulateDay(this.#seed, day, this.#options);
      for (let i = 0; i < simulated.events; i++) {
        const row = eventAt(simulated, i);
        if (row.server > query.now) break;
        if ((kinds & (1 << row.kind)) === 0 || this.#deletedUsers.has(row.user)) continue;
        for (; row.item < row.items; row.item++) yield row;
      }
    }
  }

  /** The header of an export: columns of the system, and those with a value in any row, by name. */
  header(query: RowQuery): Column[] {
    const asked = COLUMNS.filter((column) => column.isSystem || allows(query.properties, column.name));
    let open = asked.filter((column) => !column.isSystem);
    const seen = new Set(asked.filter((column) => column.isSystem));
    for (const row of open.length > 0 ? this.rows(query) : []) {
      for (const column of open) if (this.cell(column, row) !== '') seen.add(column);
      open = open.filter((column) => !seen.has(column));
      if (open.length === 0) break;
    }
    return asked.filter((column) => seen.has(column));
  }

  /** The text of a cell; empty if the row has no such value. */
  cell(column: Column, row: EventRow): string {
    const { day, hash, kind, item } = row;
    const context = { seed: this.#seed, serviceId: this.#options.service_id };
    const h = mix(hash, column.salt);
    if (column.isSystem) return column.textOf(row, h, context);
    if ((column.kinds & (1 << kind)) === 0 || mix(day.hash, column.salt) % 256 >= column.daysOf256) return '';
    const drawn = column.grain === 'item' ? mix(h, item) : h;
    return (drawn & 0xff) < column.rowsOf256 ? column.textOf(row, drawn, context) : '';
  }
}
