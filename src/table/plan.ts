import { configError } from '../base/errors.ts';
import type { SchemaMode } from '../config/source.ts';
import { EVENT_NAME, EVENT_NAME_ALTERNATIVE, groupOf, ITEM_PREFIX } from '../schema/groups.ts';
import { NULL_TEXT } from '../types/evidence.ts';
import { acceptedBy, fitsWholly, typeOf, widenings } from '../types/index.ts';
import type { ColumnType, Evidence } from '../types/type.ts';
import { columnKey, FIRST_COLUMNS, isItem, type StoredColumn } from './columns.ts';
import type { IncomingColumn, IncomingColumns } from './incoming.ts';
import { assignItemNames, assignNames, foldName, OWN_NAMES } from './names.ts';

/** What decides the types of a table's columns besides the data. */
export interface Rules {
  readonly zoned: boolean;
  /** By source name; beats everything else. */
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
  /** A pinned schema: types by source name. */
  readonly pinned: ReadonlyMap<string, ColumnType> | undefined;
  readonly mode: SchemaMode;
  /** The name that a column is given by its name in the export, before it is told apart from others; else the same. */
  readonly nameOf?: (source: string) => string;
}

/** What a batch of windows does to one column of the table; evidence and cells are those of the whole batch. */
export interface PlannedColumn extends StoredColumn {
  readonly key: string;
  /** Its type before this batch. */
  readonly before: ColumnType | null;
  /** Of all windows before this batch. */
  readonly storedEvidence: Evidence;
  /** The type that the cells of the batch are read as before they become `type`; null: nothing of them is stored. */
  readonly readAs: ColumnType | null;
  readonly windowEvidence: Evidence;
  /** True when every cell of the batch fits `readAs`. */
  readonly isClean: boolean;
  /** True when the table does not take the column: its cells go to `_rescued`. */
  readonly isRefused: boolean;
  /** Of the first cell of the batch that `before` does not hold. */
  readonly shape: string | undefined;
  /** True when something of the stored row changed. */
  readonly isChanged: boolean;
}

/** A stored column that changes its type. */
export type Retyped = PlannedColumn & { readonly before: ColumnType; readonly type: ColumnType };

export function isRetyped(column: PlannedColumn): column is Retyped {
  return column.before !== null && column.type !== null && column.type !== column.before;
}

/** True if no value can be lost. A type that is fixed may be narrower than some stored values. */
export function isWidening({ before, type, storedEvidence }: Retyped, zoned: boolean): boolean {
  return widenings(before).includes(type) && (type === 'string' || fitsWholly(storedEvidence, type, zoned));
}

/**
 * How many of these windows, counted from the first, one plan stores exactly as a plan each would, at least 1 (S53). Ends
 * before a window that makes texts of cells which an earlier window of the batch would have stored as another type, since
 * those are written in their canonical form (S21) or, as `null`, not at all (S18); and after every window if `schema_mode`
 * holds a window to the columns of those before it.
 */
export function plannedTogether(
  stored: readonly StoredColumn[],
  windows: readonly IncomingColumns[],
  rules: Rules,
): number {
  if (rules.mode !== 'evolve') return 1;
  const known = new Map(stored.map((column) => [columnKey(column.source, column.occurrence), column]));
  const seen = new Map<string, { readonly evidence: Evidence; readonly own: ColumnType | 'null' }>();
  /** Of the columns that earlier windows of the batch bring: their keys, and their names, without numbers, as they are compared. */
  const [brought, names] = [new Set<string>(), new Set<string>()];
  for (const [i, { columns }] of windows.entries()) {
    const fresh = [...columns.values()].filter(({ key }) => !known.has(key) && !brought.has(key));
    if (fresh.some((column) => names.has(stemOf(column, rules)))) return i;
    for (const column of fresh) {
      brought.add(column.key);
      names.add(stemOf(column, rules));
    }
    for (const [key, column] of columns) {
      const own = typeOf(column.evidence, rules.zoned) ?? ((column.evidence & NULL_TEXT) === 0 ? undefined : 'null');
      if (own === undefined || column.declared !== undefined) continue;
      const { type = null, evidence: storedEvidence = 0 } = known.get(key) ?? {};
      const before = seen.get(key);
      const current = widened(type, typeOf(storedEvidence | (before?.evidence ?? 0), rules.zoned));
      const hasNullText = (column.evidence & NULL_TEXT) !== 0 && own !== 'string';
      if (hasNullText && current === 'string' && type !== 'string') return i;
      const evidence = (before?.evidence ?? 0) | column.evidence;
      const joined = typeOf(evidence, rules.zoned);
      const isText = joined === 'string' || joined === 'string[]';
      if (before === undefined || (own !== 'null' && before.own === 'null')) seen.set(key, { evidence, own });
      else seen.set(key, { evidence, own: before.own });
      if (before === undefined || !isText || own === before.own || own === 'null') continue;
      if (before.own !== 'null' || type !== 'string') return i;
    }
  }
  return windows.length;
}

const stemOf = ({ source }: IncomingColumn, rules: Rules): string =>
  foldName(rules.nameOf?.(source) ?? source).replace(/(_\d+)+$/, '');

/**
 * What a batch of windows does to the columns of the table: names for new ones, types for all. `isFirst`: nothing was committed
 * yet, so `freeze` and `fail` have nothing to hold to but a pinned schema. Throws UserError under `fail`.
 */
export function planColumns(
  stored: readonly StoredColumn[],
  incoming: ReadonlyMap<string, IncomingColumn>,
  rules: Rules,
  isFirst: boolean,
): PlannedColumn[] {
  const mode = isFirst && rules.pinned === undefined ? 'evolve' : rules.mode;
  const all = [...stored, ...newColumns(stored, incoming, rules)];
  const known = new Set(stored.map((column) => columnKey(column.source, column.occurrence)));
  return all.map((column) => {
    const key = columnKey(column.source, column.occurrence);
    return planColumn(column, key, incoming.get(key), rules, mode, known.has(key));
  });
}

/** Columns that the map lacks, with names: those of a pinned schema and those of the window. */
function newColumns(
  stored: readonly StoredColumn[],
  incoming: ReadonlyMap<string, IncomingColumn>,
  rules: Rules,
): StoredColumn[] {
  const known = new Set(stored.map((column) => columnKey(column.source, column.occurrence)));
  const fresh = [...incoming.values()].filter(({ key }) => !known.has(key));
  const arriving = new Set(fresh.map((scanned) => scanned.key));
  for (const source of rules.pinned?.keys() ?? []) {
    const key = columnKey(source, 1);
    if (source === EVENT_NAME_ALTERNATIVE || known.has(key) || arriving.has(key)) continue;
    fresh.push({ ...NOTHING_SEEN, key, source, group: groupOf(source) });
  }
  const names = assignNames(
    [...OWN_NAMES, ...stored.map((c) => c.name)],
    fresh.map(({ source }) => rules.nameOf?.(source) ?? source),
  );
  const itemNames = itemNamesOf(stored, fresh, names);
  return fresh.map((scanned, i) => ({
    source: scanned.source,
    occurrence: scanned.occurrence,
    name: names[i],
    itemName: itemNames.get(i) ?? null,
    group: scanned.group,
    type: null,
    evidence: 0,
    position: stored.length + i,
    firstShape: null,
  }));
}

const NOTHING_SEEN = { occurrence: 1, declared: undefined, evidence: 0, seen: [] };

/** Names in `event_items` of the new item columns, by their index. */
function itemNamesOf(
  stored: readonly StoredColumn[],
  fresh: readonly IncomingColumn[],
  names: readonly string[],
): Map<number, string> {
  const items = fresh.map((_, i) => i).filter((i) => isItem(fresh[i].group));
  const taken = [...OWN_NAMES, ...FIRST_COLUMNS.map((c) => c.name), ...stored.flatMap((c) => c.itemName ?? [])];
  const given = assignItemNames(
    taken,
    items.map((i) => names[i]),
    ITEM_PREFIX,
  );
  return new Map(items.map((index, i) => [index, given[i]]));
}

function planColumn(
  column: StoredColumn,
  key: string,
  scanned: IncomingColumn | undefined,
  rules: Rules,
  mode: SchemaMode,
  isKnown: boolean,
): PlannedColumn {
  const windowEvidence = scanned?.evidence ?? 0;
  const evidence = column.evidence | windowEvidence;
  const named = namedType(column, rules);
  const fixed = named ?? fixedType(column, scanned, mode);
  // Of a column that is a string already the text `null` is a value (S18).
  const keepsNullText = (fixed ?? column.type) === 'string';
  const hasValues = (windowEvidence & (keepsNullText ? ~0 : ~NULL_TEXT)) !== 0;
  const isNew = column.type === null && named === undefined;
  const isRefused = isNew && mode === 'freeze';
  const wanted = isRefused ? null : (fixed ?? widened(column.type, typeOf(evidence, rules.zoned)));
  const settled = column.type === null && !hasValues && !isPinned(column, rules) ? null : wanted;
  const seenAs = fixed ?? typeOf(windowEvidence, rules.zoned) ?? (keepsNullText ? 'string' : null);
  // A date whose midnight the zone skips is a date, but no datetime.
  const isNoInstant = seenAs === 'date' && settled === 'datetime' && !fitsWholly(windowEvidence, settled, rules.zoned);
  const readAs = hasValues && !isRefused ? (isNoInstant ? settled : seenAs) : null;
  const isClean = readAs === null || fitsWholly(windowEvidence, readAs, rules.zoned);
  const firstShape = column.firstShape ?? scanned?.seen[0]?.shape ?? null;
  const accepted = column.type === null ? 0 : acceptedBy(column.type, rules.zoned);
  const shape = scanned?.seen.find((cell) => (cell.evidence & ~accepted & ~NULL_TEXT) !== 0)?.shape;
  if (mode === 'fail' && hasValues) refuseChange(column, settled, isNew, isClean, fixed !== undefined, shape);
  return {
    ...column,
    key,
    before: column.type,
    storedEvidence: column.evidence,
    type: settled,
    evidence,
    firstShape,
    readAs,
    windowEvidence,
    isClean,
    isRefused: isRefused && hasValues,
    shape,
    isChanged: !isKnown || settled !== column.type || evidence !== column.evidence || firstShape !== column.firstShape,
  };
}

/** The type that `column_types` or a pinned schema gives the column. */
function namedType(column: StoredColumn, rules: Rules): ColumnType | undefined {
  const names = column.source === EVENT_NAME ? [EVENT_NAME, EVENT_NAME_ALTERNATIVE] : [column.source];
  const from = (types: ReadonlyMap<string, ColumnType> | undefined) =>
    names.map((name) => types?.get(name)).find((type) => type !== undefined);
  return from(rules.columnTypes) ?? (column.occurrence === 1 ? from(rules.pinned) : undefined);
}

/** The type that the data cannot change, if the column has one by its group or under `freeze`. */
function fixedType(
  column: StoredColumn,
  scanned: IncomingColumn | undefined,
  mode: SchemaMode,
): ColumnType | undefined {
  if (isDeclared(column)) return scanned?.declared ?? column.type ?? undefined;
  return mode === 'freeze' && column.type !== null ? column.type : undefined;
}

const isDeclared = (column: StoredColumn) => column.group !== 'custom' && column.group !== 'custom_item';
const isPinned = (column: StoredColumn, rules: Rules) =>
  column.occurrence === 1 && rules.pinned?.has(column.source) === true;

/** The least type that holds the stored column and what the data says now. */
function widened(stored: ColumnType | null, wanted: ColumnType | undefined): ColumnType | null {
  if (stored === null || wanted === undefined || stored === wanted) return wanted ?? stored;
  if (widenings(stored).includes(wanted)) return wanted;
  return widenings(wanted).includes(stored) ? stored : 'string';
}

function refuseChange(
  column: StoredColumn,
  type: ColumnType | null,
  isNew: boolean,
  isClean: boolean,
  isFixed: boolean,
  shape: string | undefined,
): void {
  const is = shape === undefined ? '' : ` (first such cell: ${shape})`;
  const where = { where: { column: column.source } };
  if (isNew) {
    throw configError(
      `column ${column.source} is new${is} and schema_mode is fail: add it to the schema or use evolve.`,
      where,
    );
  }
  if (type !== column.type && column.type !== null && !isFixed) {
    throw configError(
      `column ${column.source} of type ${column.type} would become ${type}${is} and schema_mode is fail.`,
      where,
    );
  }
  if (!isClean) {
    throw configError(
      `column ${column.source} of type ${type} has a cell that does not fit${is} and schema_mode is fail.`,
      where,
    );
  }
}
