import type { DatasetParameters } from './dataset-parameters.ts';
import type { Row } from './event.ts';

/** One column of the export: where it may have a value, and the text of that value. */
export interface ColumnSpec {
  readonly name: string;
  /** System columns are in every export, whatever `properties` says. */
  readonly isSystem: boolean;
  /** In the header even where no row has a value. */
  readonly isListed: boolean;
  /** Whose value it is: an event's, repeated on each of its rows, or an item's. */
  readonly grain: 'event' | 'item';
  /** Bits of the event kinds that may carry it. */
  readonly events: number;
  /** Of 256 rows, how many have a value. */
  readonly fill: number;
  /** Of 256 days, how many know the column at all. */
  readonly days: number;
  /** Whether the text may need CSV quotes. */
  readonly free: boolean;
  /** The text for a row, drawn from `h`; an empty text is an absent value. */
  readonly text: (row: Row, h: number, parameters: DatasetParameters) => string;
  /** Overrides `days` where the days are named. */
  readonly onDay?: (day: string) => boolean;
}

export interface Column extends ColumnSpec {
  readonly salt: number;
}

const EVERY = 256;
const ALL_EVENTS = -1;

/** A column with what is usual, but for the parts given. */
export const column = (name: string, part: Partial<ColumnSpec> & Pick<ColumnSpec, 'text'>): ColumnSpec => ({
  name,
  isSystem: false,
  isListed: false,
  grain: 'event',
  events: ALL_EVENTS,
  fill: EVERY,
  days: EVERY,
  free: false,
  ...part,
});
