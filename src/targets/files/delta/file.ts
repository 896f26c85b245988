import validStats from '../../../../schemas/delta-log.stats.validator';
import validNote from '../../../../schemas/files-state.note.validator';
import type { Day } from '../../../base/days.ts';
import type { TableState } from '../../../table/place-state.ts';
import { EVENTS, type Table, typedColumns } from '../../../table/tables.ts';
import type { DayFile, NewFile } from '../format.ts';
import { PARTITION_COLUMN } from '../rows.ts';
import { checked, damagedError, parseJson } from '../stored.ts';
import { type Action, type Add, dayOfFile } from './protocol/entry.ts';

/** The tag of this program on the files of the log. */
const NOTE = 'dfinery';

interface Stats {
  readonly numRecords: number;
  readonly nullCount: Readonly<Record<string, number>>;
}

/** The table of a file, and the day of its snapshot if it has no partitions. */
interface FileUnit {
  readonly table: Table['name'];
  readonly snapshotDay: Day | undefined;
}

/** The file of a log entry. Throws a configuration failure for one that another program wrote. */
export function dayFileOf(add: Add, place: string, { table, snapshotDay }: FileUnit): DayFile {
  const where = `${place}/${add.path}`;
  const { [PARTITION_COLUMN]: partition } = add.partitionValues;
  const day = table === EVENTS.name ? partition : snapshotDay;
  const note = add.tags?.[NOTE];
  if (note == null || add.stats == null || day == null || (partition ?? undefined) !== dayOfFile(add.path)) {
    throw damagedError(where, 'another program wrote it into the table');
  }
  const { sha256 } = checked<{ sha256: string }>(validNote, parseJson(note, where), where);
  const { numRecords, nullCount } = checked<Stats>(validStats, parseJson(add.stats, where), where);
  const columns = new Set(Object.keys(nullCount));
  return { day, path: `${table}/${add.path}`, rows: numRecords, bytes: add.size, sha256, columns };
}

export function addOf(file: NewFile, state: TableState, now: number, table: Table['name']): Action {
  return {
    add: {
      path: file.path.slice(table.length + 1),
      partitionValues: table === EVENTS.name ? { [PARTITION_COLUMN]: file.day } : {},
      size: file.bytes,
      modificationTime: Math.floor(now),
      dataChange: true,
      stats: statsOf(file, state),
      tags: { [NOTE]: JSON.stringify({ sha256: file.sha256 }) },
    },
  };
}

export const removeOf = (add: Add, now: number): Action => ({
  remove: {
    path: add.path,
    deletionTimestamp: Math.floor(now),
    dataChange: true,
    extendedFileMetadata: true,
    partitionValues: add.partitionValues,
    size: add.size,
    tags: add.tags ?? {},
  },
});

/**
 * Rows, and rows without a value of every column. Least and greatest values only of system datetimes: those of any other
 * column would keep a person's value in the log.
 */
function statsOf({ rows, facts }: NewFile, { columns, timezone }: TableState): string {
  const times = typedColumns(columns).filter(({ group, type }) => group === 'system' && type === 'datetime');
  const rangeOf = (which: 'least' | 'greatest') =>
    Object.fromEntries(
      times.flatMap(({ name }) => {
        const text = instant(facts.get(name)?.[which] ?? '', timezone === null ? '' : 'Z');
        return text === undefined ? [] : [[name, text]];
      }),
    );
  const nullCount = Object.fromEntries([...facts].map(([name, { nulls }]) => [name, nulls]));
  return JSON.stringify({
    numRecords: rows,
    minValues: rangeOf('least'),
    maxValues: rangeOf('greatest'),
    nullCount,
  });
}

const INSTANT = /^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?(?:\+00)?$/;

/** An instant with milliseconds, as readers expect it; undefined for one with microseconds, which would be cut. */
function instant(text: string, zone: string): string | undefined {
  const match = INSTANT.exec(text);
  if (match === null) return undefined;
  const [, date, time, fraction = ''] = match;
  const digits = fraction.padEnd(6, '0');
  return digits.endsWith('000') ? `${date}T${time}.${digits.slice(0, 3)}${zone}` : undefined;
}
