import { type Day, daysOf } from '../base/days.ts';
import { COLUMNS, type Column } from './columns.ts';
import { type EventRow, eventsOf } from './events.ts';
import { externalId, profileOf, USER_COUNT } from './people.ts';
import { mix, seededRandom } from './random.ts';

/** A filter by names: `all`, only these, or all but these. */
export interface NameFilter {
  readonly condition: 'all' | 'include' | 'exclude';
  readonly names: ReadonlySet<string>;
}

/** The requested rows: days by the service's own count, both included, as they are at `now` (ms UTC). */
export interface RowQuery {
  readonly from: Day;
  readonly to: Day;
  readonly eventFilter: NameFilter;
  readonly propertyFilter: NameFilter;
  readonly now: number;
}

export const allows = ({ condition, names }: NameFilter, name: string): boolean =>
  condition === 'all' || names.has(name) === (condition === 'include');

/** The data of all exports. It holds no row: each is computed from its day when it is requested. */
export class Dataset {
  readonly #serviceId: string;
  readonly #eventsPerDay: number;
  readonly #deletedUsers = new Set<number>();

  constructor(serviceId: string, eventsPerDay: number) {
    this.#serviceId = serviceId;
    this.#eventsPerDay = eventsPerDay;
  }

  /** Removes the profile and all events of the user with this external id, if there is one. */
  deleteUser(id: string): void {
    const user = Number(id);
    if (externalId(user) === id) this.#deletedUsers.add(user);
  }

  /** The profile of each user, as it is now. */
  *profiles(): Generator<Readonly<Record<string, string>>> {
    for (let user = 0; user < USER_COUNT; user++) {
      if (!this.#deletedUsers.has(user)) yield profileOf(user);
    }
  }

  /** The rows of a query in the order of their arrival. */
  *rows({ from, to, eventFilter, now }: RowQuery): Generator<EventRow, void, undefined> {
    for (const day of daysOf(from, to)) {
      for (const event of eventsOf(day, this.#eventsPerDay, this.#serviceId)) {
        if (event.receivedAt > now) return;
        if (!allows(eventFilter, event.eventName) || this.#deletedUsers.has(event.user)) continue;
        for (let item = 0; item < event.rowCount; item++) yield { ...event, item };
      }
    }
  }

  /** The header of an export: columns of the system, and those with a value in any row, by name. */
  header(query: RowQuery): Column[] {
    const columns = COLUMNS.filter((column) => column.isSystem || allows(query.propertyFilter, column.name));
    const emptyColumns = new Set(columns.filter((column) => !column.isSystem));
    for (const row of this.rows(query)) {
      if (emptyColumns.size === 0) break;
      for (const column of emptyColumns) if (cellText(column, row) !== '') emptyColumns.delete(column);
    }
    return columns.filter((column) => !emptyColumns.has(column));
  }
}

/** The text of a cell; empty if the row has no such value. */
export function cellText({ seed, eventNames, share, dayShare, isPerItem, draw }: Column, row: EventRow): string {
  if (eventNames !== undefined && !eventNames.includes(row.eventName)) return '';
  if (dayShare < 1 && seededRandom(row.daySeed, seed)() >= dayShare) return '';
  const random = seededRandom(isPerItem ? mix(row.hash, row.item + 1) : row.hash, seed);
  return random() < share ? draw(row, random) : '';
}
