import { type Day, startOf } from '../../src/base/days.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import type { TruthRow } from '../support/service/test-service.ts';

const HOUR = 3_600_000;
const DAY_MS = 24 * HOUR;

/** How the rows of a service come and go. */
export interface TruthOptions {
  readonly seed: number;
  /** Hours ahead of UTC where its days begin. */
  readonly zoneHours: number;
  /** Hours after its end at which a day appears at all: a provider that lags. Without it rows appear as they arrive. */
  readonly lagHours?: number;
  /** Rows that come late or vanish, but before the next day is over everywhere. */
  readonly isRestless?: boolean;
  /** A day without rows: every so many. */
  readonly emptyEvery?: number;
}

export const PEOPLE = ['m01', 'm02', 'm03', 'm04', 'm05', 'm06', 'm07', 'm08'];
export const personOf = (memberNumber: string): string => `u-${memberNumber}`;

const NAMES = ['df_login', 'df_logout', 'df_purchase', 'df_view_home', '설문 응답', 'own, "quoted"'];
const MEMOS = ['plain', 'two\nlines', 'say "no", then', '=1+1', '007', ' padded ', '한글'];

/** The rows of a service, kept outside of it: each is a pure function of the seed and its day. */
export class Truth {
  readonly #options: TruthOptions;
  readonly #days = new Map<Day, readonly TruthRow[]>();

  constructor(options: TruthOptions) {
    this.#options = options;
  }

  /** All rows of a day, past and future. */
  rows(day: Day): readonly TruthRow[] {
    const rows = this.#days.get(day) ?? this.#make(day);
    this.#days.set(day, rows);
    return rows;
  }

  /** The rows that the service shows at an instant (ms UTC). */
  shown(day: Day, at: number): TruthRow[] {
    return this.rows(day).filter(({ from = 0, until = Number.POSITIVE_INFINITY }) => from <= at && at < until);
  }

  #make(day: Day): TruthRow[] {
    const { seed, zoneHours, lagHours, isRestless = false, emptyEvery } = this.#options;
    const number = startOf(day) / DAY_MS;
    if (emptyEvery !== undefined && number % emptyEvery === 0) return [];
    const random = new SeededRandom(seed * 1_000 + number);
    const begin = startOf(day) - zoneHours * HOUR;
    const events = random.int(4, 9);
    const settled = startOf(day) + 59 * HOUR;
    return Array.from({ length: events }, (_, i) => {
      // The first event is at midnight to the millisecond.
      const at = begin + (i === 0 ? 0 : Math.floor(((i + random.unit()) / events) * DAY_MS));
      const from = lagHours === undefined ? at : begin + DAY_MS + lagHours * HOUR;
      // The first stays: a day that has rows is never answered as an empty one later.
      const isLate = isRestless && i > 0 && random.chance(0.2);
      const isGone = isRestless && i > 0 && !isLate && random.chance(0.15);
      const shown = {
        from: isLate ? Math.max(from, random.int(begin + DAY_MS, settled)) : from,
        ...(isGone && { until: Math.max(from + 1, random.int(begin + DAY_MS, settled)) }),
      };
      const name = random.pick(NAMES);
      const items = name === 'df_purchase' ? random.int(1, 3) : 1;
      const cells = this.#event(day, number, i, at, random, name);
      return Array.from({ length: items }, (_, item): TruthRow => {
        const id = `${day}-${i}`;
        const detail = items > 1 ? `${id}:${item}` : random.chance(0.05) ? '' : id;
        const itemCells = name === 'df_purchase' ? { df_items_df_item_id: `item-${item}`, df_items_color: '빨강' } : {};
        const rowCells = { ...cells, df_event_log_id: id, df_event_detail_log_id: detail, ...itemCells };
        return { cells: new Map(Object.entries(rowCells).filter(([, text]) => text !== '')), ...shown };
      });
    }).flat();
  }

  #event(day: Day, number: number, i: number, at: number, random: SeededRandom, name: string): Record<string, string> {
    const member = random.pick(PEOPLE);
    const stamp = (ms: number) =>
      new Date(ms + this.#options.zoneHours * HOUR).toISOString().slice(0, -1).replace('T', ' ');
    return {
      event_name: name,
      df_api_version: 'v1',
      df_unified_id: personOf(member),
      df_server_datetime: stamp(at),
      df_correction_datetime: stamp(at - random.int(0, 900)),
      member_no: member,
      amount: random.pick(['12.5', '1', '0.25', '']),
      count: String(i),
      is_new: random.pick(['TRUE', 'FALSE', '']),
      tags: random.pick(['["a","b"]', '[]', '']),
      memo: random.pick(MEMOS),
      // Long on some days, text on others; a column that only some days have.
      level: number % 5 === 0 ? 'gold' : String(random.int(1, 9)),
      [`added_${Math.floor(number / 6)}`]: random.pick(['x', '']),
      only_today: number % 7 === 0 ? day : '',
    };
  }
}

/** A row as one text, however a place has typed it: names and values, in the order of names. */
export function rowText(cells: Iterable<readonly [string, unknown]>): string {
  const filled = [...cells].filter(([, value]) => value !== null && value !== undefined && value !== '');
  const pairs = filled.map(
    ([name, value]) => [name === 'event_name' ? 'df_event_name' : name, cellText(value)] as const,
  );
  return JSON.stringify(pairs.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function cellText(value: unknown): string {
  if (Array.isArray(value)) return JSON.stringify(value);
  const text = String(value);
  if (/^(TRUE|FALSE)$/.test(text)) return text.toLowerCase();
  return /^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d/.test(text)
    ? text
        .replace('T', ' ')
        .replace(/(\.\d*?)0+$/, '$1')
        .replace(/\.$/, '')
    : text;
}
