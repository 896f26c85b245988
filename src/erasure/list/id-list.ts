// This folder: the list of an erasure. `list-file.ts` reads its rows, and this file keeps its ids.

import { hash } from 'node:crypto';
import { HOUR_MS } from '../../base/clock.ts';
import { isDay } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import { isBlank, isPlaceholder } from '../../base/placeholder.ts';
import { formatCount, withSeparators } from '../../base/quantities.ts';
import { MAX_NAMED_IN_LINE, MAX_NAMED_IN_RECORD } from '../../base/text.ts';

/** Reasons to refuse a row before anything is sent, as texts for people. */
const REFUSALS = {
  missing: 'the ID is missing, empty or blank',
  not_text: 'the ID is not text, or holds a line break, a tab or another control character',
  placeholder: 'the ID is a placeholder such as null, undefined, NaN or *',
  requested_at: 'the time of the request is no datetime',
  withdrawn: 'the request was withdrawn at the source (_ab_cdc_deleted_at)',
} as const;
type Refusal = keyof typeof REFUSALS;

export interface ListedId {
  readonly id: string;
  /** The number of its first row: as a spreadsheet shows the file, or among the records of a platform. */
  readonly rowNumber: number;
  /** When the deletion was asked for (ms since 1970), if the list says so; of several times the latest. */
  readonly requestedAt: number | undefined;
}

/** One row of a list, with whatever stands in its cells. */
export interface ListRow {
  readonly rowNumber: number;
  readonly id: unknown;
  /** Undefined if the list has no such field. */
  readonly requestedAt?: unknown;
}

/** Numbers of the rows of a list, with the names of the report. A withdrawal lowers `ids`, but not `received`. */
export interface ListCounts {
  readonly received: number;
  readonly refused: Readonly<Partial<Record<Refusal, number>>>;
  /** The numbers of these rows; of each reason the first hundred. */
  readonly refused_rows: Readonly<Partial<Record<Refusal, readonly number[]>>>;
  readonly duplicates: number;
  readonly ids: number;
}
type RefusedRows = Omit<ListCounts, 'duplicates' | 'ids'>;

/** The ledger gets a line for each id in one string: about 400 characters an id, of 2^29 at most. */
const MAX_IDS = 1_000_000;
const CONTROL_OR_LONE_SURROGATE = /[\p{Cc}\p{Surrogate}]/u;
const UNSEEN_EDGE = /^[\p{White_Space}\p{Cf}]|[\p{White_Space}\p{Cf}]$/u;
const ODD_SPELLINGS: readonly { readonly isOdd: (id: string) => boolean; readonly fault: string }[] = [
  { isOdd: (id) => UNSEEN_EDGE.test(id), fault: 'begins or ends with a blank' },
  { isOdd: (id) => id.normalize('NFKC') !== id, fault: 'is not in the usual Unicode form (NFKC)' },
];

/** The whole list of an erasure, read before the first request: each id once, in the order of its rows. */
export class IdList {
  readonly #ids = new Map<string, ListedId>();
  readonly #counts = {
    received: 0,
    refused: {} as Partial<Record<Refusal, number>>,
    refused_rows: {} as Partial<Record<Refusal, number[]>>,
    duplicates: 0,
  };
  /** True once a row with an id is withdrawn: then the field of the ids is right. */
  #hasWithdrawnId = false;

  /** Adds a row. Returns its id; undefined if it is refused, which is counted. Throws UserError for too long a list. */
  add({ rowNumber, id, requestedAt }: ListRow): string | undefined {
    this.#counts.received++;
    if (typeof id !== 'string') return this.#refuse(rowNumber, (id ?? null) === null ? 'missing' : 'not_text');
    const refusal = refusalOf(id);
    if (refusal !== undefined) return this.#refuse(rowNumber, refusal);
    const instant = requestInstant(requestedAt);
    if (instant === 'invalid') return this.#refuse(rowNumber, 'requested_at');
    const listedId = this.#ids.get(id);
    if (listedId !== undefined) {
      this.#counts.duplicates++;
      const isLater = instant !== undefined && instant > (listedId.requestedAt ?? Number.NEGATIVE_INFINITY);
      if (isLater) this.#ids.set(id, { ...listedId, requestedAt: instant });
      // The text of the first row: the others need no memory.
      return listedId.id;
    }
    if (this.#ids.size === MAX_IDS)
      throw configError(`The list is too long: more than ${MAX_IDS} IDs. Split it. Nothing was done.`);
    this.#ids.set(id, { id, rowNumber, requestedAt: instant });
    return id;
  }

  /** Refuses a row that withdraws the request for an id, and takes back the rows before it with that id. */
  withdraw({ rowNumber, id }: ListRow): undefined {
    this.#counts.received++;
    if (typeof id === 'string') {
      this.#ids.delete(id);
      this.#hasWithdrawnId ||= refusalOf(id) === undefined;
    }
    return this.#refuse(rowNumber, 'withdrawn');
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  listedIds(): readonly ListedId[] {
    return [...this.#ids.values()];
  }

  get counts(): ListCounts {
    return { ...this.#counts, ids: this.#ids.size };
  }

  /** The field that is probably wrong, since no row is usable, and some are refused for it. */
  get wrongField(): 'id' | 'requested_at' | undefined {
    const { refused } = this.#counts;
    if (this.#ids.size > 0) return undefined;
    if (refused.requested_at !== undefined) return 'requested_at';
    const isIdRefused = Object.keys(refused).some((refusal) => refusal !== 'withdrawn');
    return isIdRefused && !this.#hasWithdrawnId ? 'id' : undefined;
  }

  /** SHA-256 (hex) of the ids and the times of their requests: neither order nor repetitions change it. */
  get digest(): string {
    const hashes = this.listedIds().map(({ id, requestedAt }) =>
      hash('sha256', JSON.stringify([id, requestedAt ?? null])),
    );
    return hash('sha256', hashes.sort().join(''));
  }

  /** Sentences about ids that are probably not spelt as the service spells them, by the rows of the list. */
  warnings(): string[] {
    return ODD_SPELLINGS.flatMap(({ isOdd, fault }) => {
      const oddIds = this.listedIds().filter(({ id }) => isOdd(id));
      return oddIds.length === 0 ? [] : [`${rowsText(rowNumbersOf(oddIds))}: the ID ${fault}. It is used as it is.`];
    });
  }

  #refuse(rowNumber: number, refusal: Refusal): undefined {
    const { refused, refused_rows: refusedRows } = this.#counts;
    refused[refusal] = (refused[refusal] ?? 0) + 1;
    refusedRows[refusal] ??= [];
    if (refusedRows[refusal].length < MAX_NAMED_IN_RECORD) refusedRows[refusal].push(rowNumber);
  }
}

/** The reasons of refused rows, as texts for people, each with its number of rows and the first of them. */
export function rowsByReason({ refused, refused_rows }: RefusedRows) {
  const refusals = Object.keys(REFUSALS) as Refusal[];
  return refusals.flatMap((refusal) => {
    const count = refused[refusal];
    return count === undefined ? [] : { reason: REFUSALS[refusal], count, rowNumbers: refused_rows[refusal] ?? [] };
  });
}

/** How many rows are refused, and which for what reason; undefined if there are none. */
export function refusedParagraph(counts: RefusedRows): string | undefined {
  const reasons = rowsByReason(counts);
  if (reasons.length === 0) return undefined;
  const total = reasons.reduce((sum, { count }) => sum + count, 0);
  return [
    `${withSeparators(total)} of ${formatCount(counts.received, 'row')} ${total === 1 ? 'is' : 'are'} refused.`,
    ...reasons.map(({ reason, count, rowNumbers }) => `${rowsText(rowNumbers, count)}: ${reason}.`),
  ].join(' ');
}

export const rowNumbersOf = (listedIds: readonly ListedId[]): number[] => listedIds.map(({ rowNumber }) => rowNumber);

/** `Row 3`, `Rows 3, 7, 9`; of `count` rows, of which these are the first. */
export function rowsText(rowNumbers: readonly number[], count = rowNumbers.length): string {
  const moreText = count > MAX_NAMED_IN_LINE ? ` and ${withSeparators(count - MAX_NAMED_IN_LINE)} more` : '';
  return `${count === 1 ? 'Row' : 'Rows'} ${rowNumbers.slice(0, MAX_NAMED_IN_LINE).join(', ')}${moreText}`;
}

function refusalOf(id: string): Refusal | undefined {
  if (isBlank(id)) return 'missing';
  if (CONTROL_OR_LONE_SURROGATE.test(id)) return 'not_text';
  return isPlaceholder(id) ? 'placeholder' : undefined;
}

const REQUEST_TIME = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(:\d{2}(?:\.\d{1,9})?)?\s?(Z|[+-]\d{2}(?::?\d{2})?)?)?$/;

/** No zone is further ahead of UTC (ms). */
const MAX_ZONE_AHEAD_MS = 14 * HOUR_MS;

/**
 * The instant (ms since 1970) of a datetime; `invalid` for anything else. Without a zone it is the earliest instant
 * that it may mean anywhere. So a request before a confirmation is never taken for a later one. It is cut to ms.
 */
function requestInstant(value: unknown): number | undefined | 'invalid' {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') return 'invalid';
  const [, day, time = '00:00', seconds = ':00', offset] = REQUEST_TIME.exec(value.trim()) ?? [];
  if (day === undefined || !isDay(day)) return 'invalid';
  const zone = (offset ?? 'Z').replace(/^([+-]\d{2}):?(\d{2})?$/, (_, hours, minutes = '00') => `${hours}:${minutes}`);
  const at = Date.parse(`${day}T${time}${seconds.slice(0, 7)}${zone}`);
  if (Number.isNaN(at)) return 'invalid';
  return offset === undefined ? at - MAX_ZONE_AHEAD_MS : at;
}
