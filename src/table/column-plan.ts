import { configError } from '../base/errors.ts';
import type { FirstSeen } from '../cells/columns/column-scan.ts';
import {
  columnKey,
  EVENT_NAME,
  EVENT_NAME_ALTERNATIVE,
  groupOf,
  type HeaderColumn,
  headerColumns,
  ITEM_PREFIX,
  nfc,
} from '../cells/columns/groups.ts';
import { type CellForms, NULL_TEXT } from '../cells/types/forms.ts';
import type { ColumnType } from '../cells/types/type.ts';
import { acceptedBy, canWiden, fitsWholly, typeOf, widenedType } from '../cells/types/types.ts';
import type { SchemaMode } from '../config/source.ts';
import type { FileScan } from '../extract/receipt.ts';
import { assignItemNames, assignNames, OWN_NAMES } from './names.ts';
import { FIRST_COLUMNS, isItem, type StoredColumn } from './tables.ts';

/** The settings that decide, beside the data, the types of a table's columns. */
export interface ColumnRules {
  /** Zone of datetimes that name none; fixed by the first load of a target. */
  readonly timezone: string | undefined;
  /** Types by source name, which take precedence over everything else. */
  readonly columnTypes: ReadonlyMap<string, ColumnType>;
  readonly schemaMode: SchemaMode;
  /** Types of a pinned schema, by source name. */
  readonly pinned?: ReadonlyMap<string, ColumnType> | undefined;
  /** Derives the name of a column from that in the export, before equal names are numbered; absent: the same. */
  readonly columnName?: ((source: string) => string) | undefined;
}

/**
 * What a batch makes of one column of the table; forms and cells are those of the whole batch. Example: a column
 * held `7`, and a cell `7.5` comes. Then `before` is long, `storedForms` are those of `7`, `forms` those of both,
 * and `type` is double.
 */
export interface PlannedColumn extends StoredColumn {
  readonly key: string;
  readonly before: ColumnType | null;
  /** The forms of all days before this batch. */
  readonly storedForms: CellForms;
  /** The type that no cell changes; undefined if the cells decide. */
  readonly fixed: ColumnType | undefined;
  /** True when the table does not take the column: its cells go to `_rescued`. */
  readonly isRefused: boolean;
  /** Shape of the first cell of the batch that does not fit `before`. */
  readonly shape: string | undefined;
}

export type Retyped = PlannedColumn & { readonly before: ColumnType; readonly type: ColumnType };

export function isRetyped(column: PlannedColumn): column is Retyped {
  return column.before !== null && column.type !== null && column.type !== column.before;
}

/**
 * Plans the names of new columns, and the types of all. `isFirst`: nothing was committed yet, so that `freeze`
 * compares with a pinned schema alone.
 */
export function planColumns(
  stored: readonly StoredColumn[],
  incoming: ReadonlyMap<string, IncomingColumn>,
  rules: ColumnRules,
  { isFirst }: { readonly isFirst: boolean },
): PlannedColumn[] {
  const schemaMode = isFirst && rules.pinned === undefined ? 'evolve' : rules.schemaMode;
  const columns = [...stored, ...newColumns(stored, incoming, rules)];
  return columns.map((column) => {
    const key = columnKey(column.source, column.occurrence);
    return planColumn(column, key, incoming.get(key), { ...rules, schemaMode });
  });
}

/** Columns of a pinned schema and of the batch that the table lacks, with their names. */
function newColumns(
  stored: readonly StoredColumn[],
  incoming: ReadonlyMap<string, IncomingColumn>,
  rules: ColumnRules,
): StoredColumn[] {
  const storedKeys = new Set(stored.map((column) => columnKey(column.source, column.occurrence)));
  const fresh = [...incoming.values()].filter(({ key }) => !storedKeys.has(key));
  const arriving = new Set(fresh.map((scanned) => scanned.key));
  for (const source of rules.pinned?.keys() ?? []) {
    const key = columnKey(source, 1);
    if (source === EVENT_NAME_ALTERNATIVE || storedKeys.has(key) || arriving.has(key)) continue;
    fresh.push({ ...NOTHING_SEEN, key, source, group: groupOf(source) });
  }
  const names = assignNames(
    [...OWN_NAMES, ...stored.map((c) => c.name)],
    fresh.map(({ source }) => rules.columnName?.(source) ?? source),
  );
  const takenByItems = [...OWN_NAMES, ...FIRST_COLUMNS.map((c) => c.name), ...stored.flatMap((c) => c.itemName ?? [])];
  const items = names.filter((_, i) => isItem(fresh[i].group));
  const itemNames = assignItemNames(takenByItems, items, ITEM_PREFIX);
  return fresh.map((scanned, i) => ({
    source: scanned.source,
    occurrence: scanned.occurrence,
    name: names[i],
    itemName: isItem(scanned.group) ? (itemNames.shift() ?? null) : null,
    group: scanned.group,
    type: null,
    forms: 0,
    position: stored.length + i,
    firstShape: null,
  }));
}

const NOTHING_SEEN = { occurrence: 1, declared: undefined, forms: 0, seen: [] };

function planColumn(
  column: StoredColumn,
  key: string,
  incoming: IncomingColumn | undefined,
  rules: ColumnRules,
): PlannedColumn {
  const asInstants = rules.timezone !== undefined;
  const batchForms = incoming?.forms ?? 0;
  const { type, fixed, hasValue, isNew } = typeAfter(column, incoming, rules);
  const accepted = column.type === null ? 0 : acceptedBy(column.type, asInstants);
  return {
    ...column,
    key,
    before: column.type,
    storedForms: column.forms,
    type,
    fixed,
    forms: column.forms | batchForms,
    firstShape: column.firstShape ?? incoming?.seen[0]?.shape ?? null,
    isRefused: hasValue && isNew && rules.schemaMode === 'freeze',
    shape: incoming?.seen.find((cell) => (cell.forms & ~accepted & ~NULL_TEXT) !== 0)?.shape,
  };
}

/** How the cells of a column, in files with these forms, become values. */
export interface Reading {
  readonly forms: CellForms;
  /** The type that cells are read as before they become that of the column; null if none of them is stored. */
  readonly readAs: ColumnType | null;
  /** True when every cell fits `readAs`. */
  readonly isClean: boolean;
  /** As `nullIsText`. */
  readonly nullIsText: boolean;
}

/**
 * True if the cell `null` is a text in a column, and not an absent value: if the column is a string, by a setting or by
 * all cells up to those of the same day.
 */
export const nullIsText = (fixed: ColumnType | undefined, typeSoFar: ColumnType | null | undefined): boolean =>
  (fixed ?? typeSoFar) === 'string';

const hasValues = (forms: CellForms, isNullText: boolean): boolean => (isNullText ? forms : forms & ~NULL_TEXT) !== 0;

/**
 * The reading of cells with these forms. They are read as their own type, if its conversion to the column's type loses
 * no value: so a batch of days gives the same texts as each day alone.
 */
export function readingOf(
  { fixed, type }: Pick<PlannedColumn, 'fixed' | 'type'>,
  forms: CellForms,
  { asInstants, isNullText }: { readonly asInstants: boolean; readonly isNullText: boolean },
): Reading {
  const common = { forms, nullIsText: isNullText };
  if (!hasValues(forms, isNullText) || type === null) return { ...common, readAs: null, isClean: true };
  const seenAs = fixed ?? typeOf(forms, asInstants) ?? 'string';
  const readAs = canWiden(seenAs, type, forms, asInstants) ? seenAs : type;
  return { ...common, readAs, isClean: fitsWholly(forms, readAs, asInstants) };
}

/** The type of a column after a batch, and what decided it. */
interface TypeAfter {
  /** Null while the table does not have the column. */
  readonly type: ColumnType | null;
  /** The type that no cell changes; undefined if the cells decide. */
  readonly fixed: ColumnType | undefined;
  /** True if the batch has a value for the column. */
  readonly hasValue: boolean;
  /** True if the table does not have the column yet, and no setting names its type. */
  readonly isNew: boolean;
}

function typeAfter(column: StoredColumn, incoming: IncomingColumn | undefined, rules: ColumnRules): TypeAfter {
  const asInstants = rules.timezone !== undefined;
  const batchForms = incoming?.forms ?? 0;
  const forms = column.forms | batchForms;
  const named = namedType(column, rules);
  const fixed = keptType(column, named, asInstants) ?? fixedType(column, incoming, rules);
  const hasValue = hasValues(batchForms, nullIsText(fixed, column.type));
  const decided = { fixed, hasValue, isNew: column.type === null && named === undefined };
  if (column.type !== null) return { ...decided, type: fixed ?? widenedType(column.type, forms, asInstants) };
  const isRefused = decided.isNew && rules.schemaMode === 'freeze';
  const isAdded = !isRefused && (hasValue || isPinned(column, rules));
  return { ...decided, type: isAdded ? (fixed ?? typeOf(forms, asInstants) ?? null) : null };
}

/** The type that a setting names. Throws a configuration failure if stored values may not fit into it. */
function keptType({ source, type, forms }: StoredColumn, named: ColumnType | undefined, asInstants: boolean) {
  if (named === undefined || type === null || canWiden(type, named, forms, asInstants)) return named;
  throw configError(
    `column ${source} is stored as ${type}, and its values may not fit into ${named}, which the settings name: ` +
      'keep its type, or load into another place.',
    { where: { column: source } },
  );
}

/** The type that `column_types` or a pinned schema gives the column. */
function namedType(column: StoredColumn, rules: ColumnRules): ColumnType | undefined {
  const names = column.source === EVENT_NAME ? [EVENT_NAME, EVENT_NAME_ALTERNATIVE] : [column.source];
  const configured = names.flatMap((name) => rules.columnTypes.get(nfc(name)) ?? []);
  const pinned = column.occurrence === 1 ? names.flatMap((name) => rules.pinned?.get(name) ?? []) : [];
  return [...configured, ...pinned].at(0);
}

/**
 * The type that no cell changes: that of a column of a declared group, unless stored values may not fit into it, or
 * under `freeze` the stored one. Undefined if the cells decide.
 */
function fixedType(column: StoredColumn, incoming: IncomingColumn | undefined, { schemaMode, timezone }: ColumnRules) {
  const { type, forms } = column;
  if (isDeclared(column)) {
    const declared = incoming?.declared ?? type ?? undefined;
    const holdsAll = type === null || declared === undefined || canWiden(type, declared, forms, timezone !== undefined);
    return holdsAll ? declared : type;
  }
  return schemaMode === 'freeze' && type !== null ? type : undefined;
}

const isDeclared = (column: StoredColumn) => column.group !== 'custom' && column.group !== 'custom_item';
const isPinned = (column: StoredColumn, rules: ColumnRules) =>
  column.occurrence === 1 && rules.pinned?.has(column.source) === true;

/** A column of one file: where it stands and which column of the table it feeds. */
export interface FileColumn extends Pick<HeaderColumn, 'key' | 'source'> {
  readonly index: number;
  readonly filled: number;
}

/** One column of some files, as their scans together describe it. */
export interface IncomingColumn extends Omit<HeaderColumn, 'name'> {
  readonly forms: CellForms;
  readonly seen: readonly FirstSeen[];
}

export interface IncomingColumns {
  /** Columns of each file, in the order of its header. */
  readonly files: readonly (readonly FileColumn[])[];
  /** Columns of all files by key, in the order of first occurrence. */
  readonly columns: ReadonlyMap<string, IncomingColumn>;
}

/** Joins the headers and scans of the files of a day, or of a batch of days. */
export function incomingColumns(files: readonly FileScan[]): IncomingColumns {
  const columns = new Map<string, IncomingColumn>();
  return { files: files.map((file) => columnsOfFile(file, columns)), columns };
}

/** The columns of a file; joins them in `columns` with those of the other files. */
function columnsOfFile(file: FileScan, columns: Map<string, IncomingColumn>): FileColumn[] {
  return headerColumns(file.header).map(({ key, source, occurrence, group, declared }, index) => {
    const { forms, filled, seen = [], hashed } = file.columns[index];
    const before = columns.get(key);
    columns.set(key, {
      key,
      source,
      occurrence,
      group,
      declared: hashed ? 'string' : declared,
      forms: forms | (before?.forms ?? 0),
      seen: [...(before?.seen ?? []), ...seen],
    });
    return { key, source, index, filled };
  });
}
