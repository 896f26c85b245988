import type { SpoolFile } from '../../extract/window.ts';
import { CORRECTION_DATETIME, SERVER_DATETIME } from '../../schema/groups.ts';
import { columnKey, type Typed } from '../../table/columns.ts';
import type { FileColumn } from '../../table/incoming.ts';
import type { PlannedColumn } from '../../table/plan.ts';
import { NULL_TEXT, STRING } from '../../types/evidence.ts';
import { COLUMN_TYPES, type ColumnType } from '../../types/type.ts';
import { rescueKey } from '../sql/rows/cells.ts';
import { CHECKED, type FilePlan, KEEPS_NULLS, NULLS, REFUSED } from './build/task.ts';

/** Columns that tell the date of a row, the first that has a value. */
const DATES = [columnKey(SERVER_DATETIME, 1), columnKey(CORRECTION_DATETIME, 1)];

/** How the cells of one file of a window become values of a stream with these columns. */
export function planFile(
  file: SpoolFile,
  columns: readonly FileColumn[],
  plan: ReadonlyMap<string, PlannedColumn>,
  stream: readonly Typed[],
): FilePlan {
  const places = new Map(stream.map(({ source, occurrence }, i) => [columnKey(source, occurrence), i]));
  const { path, header } = file;
  const targets = new Int32Array(header.length).fill(-1);
  const readAs = new Uint8Array(header.length);
  const flags = new Uint8Array(header.length);
  const rescueNames = new Map<number, string>();
  for (const { key, index } of columns) {
    const planned = plan.get(key);
    if (planned === undefined) continue;
    const target = places.get(key) ?? -1;
    const type = target < 0 ? null : stream[target].type;
    targets[index] = target;
    // A stream that has begun takes no column more, and none of another type, whatever a window alone would make of it.
    const isRefused = planned.isRefused || (type === null && planned.readAs !== null);
    const read = planned.readAs !== null && planned.type !== type ? type : planned.readAs;
    const isClean = planned.isClean && read === planned.readAs;
    if (read !== null && type !== null) readAs[index] = 1 + COLUMN_TYPES.indexOf(read);
    flags[index] = isRefused ? refusedFlags(planned) : cellFlags(planned, read, type, isClean);
    if (isRefused || !isClean) rescueNames.set(index, rescueKey(planned));
  }
  const dates = DATES.flatMap((key) => columns.filter((column) => column.key === key).map(({ index }) => index));
  return { path, header, targets, readAs, flags, rescueNames, dates };
}

/** Of a column without a place every cell is rescued; `null` counts only where the column is text. */
function refusedFlags({ windowEvidence }: PlannedColumn): number {
  return (windowEvidence & STRING) !== 0 ? REFUSED : REFUSED | NULLS;
}

function cellFlags(
  { windowEvidence }: PlannedColumn,
  read: ColumnType | null,
  type: ColumnType | null,
  isClean: boolean,
): number {
  if (read === null || type === null || read === 'string') return 0;
  // Evidence of a cell that is any text says nothing of the text `null` beside it.
  if (!isClean) return CHECKED | NULLS;
  if ((windowEvidence & NULL_TEXT) === 0) return 0;
  return type === 'string' ? KEEPS_NULLS : NULLS;
}
