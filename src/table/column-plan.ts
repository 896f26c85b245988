import { configError } from '../base/errors.ts';
import type { FirstCell } from '../cells/columns/column-scan.ts';
import {
  columnKey,
  EVENT_NAME,
  EVENT_NAME_ALTERNATIVE,
  groupOf,
  type HeaderColumn,
  headerColumns,
  nfc,
} from '../cells/columns/groups.ts';
import type { ColumnType } from '../cells/types/codec.ts';
import { type CellForms, NULL_TEXT } from '../cells/types/forms.ts';
import { canWiden, codecOf, fits, typeOf, widenedType } from '../cells/types/types.ts';
import { type Zone, zoneOf } from '../cells/types/zone.ts';
import type { SchemaMode } from '../config/source.ts';
import type { SpoolFile } from '../extract/checked-day.ts';
import { assignItemNames, assignNames, RESERVED_NAMES } from './names.ts';
import { FIRST_COLUMNS, isItemGroup, newColumn, type StoredColumn } from './tables.ts';

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
 * A column of the table after a batch. It has three types. `storedType` is that before the batch, `fixedType` one that
 * no cell changes. `type` is what the batch makes of both and of its cells. Example: a column held `7`, and a cell
 * `7.5` comes. Then `storedType` is long, `storedForms` are those of `7`, `forms` those of both, and `type` is double.
 */
export interface PlannedColumn extends StoredColumn {
  readonly key: string;
  /** Null if it was no column of the table. */
  readonly storedType: ColumnType | null;
  /** The forms of all days before this batch. */
  readonly storedForms: CellForms;
  /** By a setting, by its group, or under `freeze`; undefined if the cells decide. */
  readonly fixedType: ColumnType | undefined;
  /** True when the table does not take the column: its cells go to `_rescued`. */
  readonly isRefused: boolean;
  /** The first cell of the batch that does not fit the stored type. */
  readonly misfit: FirstCell | undefined;
}

type WidenedColumn = PlannedColumn & { readonly storedType: ColumnType; readonly type: ColumnType };

/** True if the batch gives a column of the table another type. */
export function isWidened(column: PlannedColumn): column is WidenedColumn {
  return column.storedType !== null && column.type !== null && column.type !== column.storedType;
}

/** One column of the files of a day, or of a batch, as their scans together describe it. */
interface IncomingColumn extends Omit<HeaderColumn, 'name'> {
  readonly forms: CellForms;
  readonly seen: readonly FirstCell[];
}

/** The columns of some files by key, in the order of first occurrence. */
export type IncomingColumns = ReadonlyMap<string, IncomingColumn>;

export function incomingColumns(files: readonly SpoolFile[]): IncomingColumns {
  const columns = new Map<string, IncomingColumn>();
  for (const file of files) {
    for (const [index, { name: _name, ...column }] of headerColumns(file.header).entries()) {
      const { forms, seen = [], hashed } = file.columns[index];
      const before = columns.get(column.key);
      columns.set(column.key, {
        ...column,
        declared: hashed ? 'string' : column.declared,
        forms: forms | (before?.forms ?? 0),
        seen: [...(before?.seen ?? []), ...seen],
      });
    }
  }
  return columns;
}

/**
 * Plans the names of new columns, and the types of all. `isFirst`: nothing was committed yet, so that `freeze`
 * compares with a pinned schema alone.
 */
export function planColumns(
  storedColumns: readonly StoredColumn[],
  incoming: IncomingColumns,
  rules: ColumnRules,
  isFirst: boolean,
): PlannedColumn[] {
  const modeRules = isFirst && rules.pinned === undefined ? { ...rules, schemaMode: 'evolve' as const } : rules;
  const columns = [...storedColumns, ...addedColumns(storedColumns, incoming, rules)];
  // A setting for `event_name` is one for the event name, unless that is a column beside it.
  const isBeside = columns.some(({ source }) => source === EVENT_NAME_ALTERNATIVE);
  const eventNames = isBeside ? [EVENT_NAME] : [EVENT_NAME, EVENT_NAME_ALTERNATIVE];
  return columns.map((column) => {
    const key = columnKey(column.source, column.occurrence);
    const settingNames = column.source === EVENT_NAME ? eventNames : [column.source];
    return planColumn(column, key, incoming.get(key), typeBySettings(column, settingNames, rules), modeRules);
  });
}

/** Columns of a pinned schema and of the batch that the table lacks, with their names. */
function addedColumns(
  storedColumns: readonly StoredColumn[],
  incoming: IncomingColumns,
  { pinned, columnName = (source) => source }: ColumnRules,
): StoredColumn[] {
  const storedKeys = new Set(storedColumns.map((column) => columnKey(column.source, column.occurrence)));
  const added: Pick<StoredColumn, 'source' | 'occurrence' | 'group'>[] = [
    ...[...incoming.values()].filter(({ key }) => !storedKeys.has(key)),
    ...[...(pinned?.keys() ?? [])]
      // It names the event name, which every place has, or a column that only a header can add.
      .filter((source) => source !== EVENT_NAME_ALTERNATIVE)
      .filter((source) => !storedKeys.has(columnKey(source, 1)) && !incoming.has(columnKey(source, 1)))
      .map((source) => ({ source, occurrence: 1, group: groupOf(source) })),
  ];
  const names = assignNames(
    [...RESERVED_NAMES, ...storedColumns.map(({ name }) => name)],
    added.map(({ source }) => columnName(source)),
  );
  const itemNames = itemNamesOf(
    storedColumns,
    names.filter((_, i) => isItemGroup(added[i].group)),
  );
  return added.map(({ source, occurrence, group }, i) => {
    const itemName = itemNames.get(names[i]) ?? null;
    return newColumn(source, storedColumns.length + i, group, null, { occurrence, name: names[i], itemName });
  });
}

/** The names in `event_items` of new item columns, by their names in `events`. */
function itemNamesOf(storedColumns: readonly StoredColumn[], names: readonly string[]): ReadonlyMap<string, string> {
  // `event_items` also has the id of the person and the system columns, which every export has.
  const taken = [
    ...RESERVED_NAMES,
    ...FIRST_COLUMNS.map(({ name }) => name),
    ...storedColumns.flatMap(({ itemName }) => itemName ?? []),
  ];
  const itemNames = assignItemNames(taken, names);
  return new Map(names.map((name, i) => [name, itemNames[i]]));
}

function planColumn(
  column: StoredColumn,
  key: string,
  incoming: IncomingColumn | undefined,
  settingType: ColumnType | undefined,
  rules: ColumnRules,
): PlannedColumn {
  const zone = zoneOf(rules.timezone);
  const { type: storedType, forms: storedForms } = column;
  const forms = storedForms | (incoming?.forms ?? 0);
  if (settingType !== undefined) checkFits(column, settingType, zone);
  const fixedType = settingType ?? fixedTypeWithoutSettings(column, incoming, rules);
  const hasValue = hasValues(incoming?.forms ?? 0, (fixedType ?? storedType) === 'string');
  // The table takes no new columns but those of settings.
  const isClosed = storedType === null && settingType === undefined && rules.schemaMode === 'freeze';
  const isInTable = storedType !== null || (!isClosed && (hasValue || isPinned(column, rules)));
  return {
    ...column,
    key,
    storedType,
    storedForms,
    type: isInTable ? (fixedType ?? typeByCells(storedType, forms, zone) ?? null) : null,
    fixedType,
    forms,
    firstShape: column.firstShape ?? incoming?.seen[0]?.shape ?? null,
    isRefused: isClosed && hasValue,
    misfit: incoming?.seen.find((cell) =>
      storedType === null ? hasValues(cell.forms, false) : !fits(codecOf(storedType, zone), cell.forms),
    ),
  };
}

/** The type that cells of these forms, with those of the stored type, give a column; undefined if none has a value. */
export const typeByCells = (storedType: ColumnType | null, forms: CellForms, zone: Zone | undefined) =>
  storedType === null ? typeOf(forms, zone) : widenedType(storedType, forms, zone);

/** The type that `column_types` or a pinned schema gives the column under one of these names. */
function typeBySettings(
  { occurrence }: StoredColumn,
  names: readonly string[],
  rules: ColumnRules,
): ColumnType | undefined {
  const configured = names.flatMap((name) => rules.columnTypes.get(nfc(name)) ?? []);
  const pinned = occurrence === 1 ? names.flatMap((name) => rules.pinned?.get(name) ?? []) : [];
  return [...configured, ...pinned].at(0);
}

/** Throws a configuration failure if stored values may not fit into the type that a setting names. */
function checkFits({ source, type, forms }: StoredColumn, settingType: ColumnType, zone: Zone | undefined): void {
  if (type === null || canWiden(type, settingType, forms, zone)) return;
  const isSoEverywhere = FIRST_COLUMNS.some((first) => first.source === source && first.type === type);
  const advice = isSoEverywhere ? 'which is the same in every place' : 'or load into another place';
  throw configError(
    `column ${source} is stored as ${type}, and its values may not fit into ${settingType}, which the settings name: ` +
      `keep its type, ${advice}.`,
    { where: { column: source } },
  );
}

/**
 * The fixed type of a column that no setting names. One of a declared group has the type of its group, unless stored
 * values may not fit into it. Under `freeze` it is the stored type.
 */
function fixedTypeWithoutSettings(
  column: StoredColumn,
  incoming: IncomingColumn | undefined,
  { schemaMode, timezone }: ColumnRules,
): ColumnType | undefined {
  const { type, forms, group } = column;
  if (group !== 'custom' && group !== 'custom_item') {
    const declared = incoming?.declared ?? type ?? undefined;
    const holdsAll = type === null || declared === undefined || canWiden(type, declared, forms, zoneOf(timezone));
    return holdsAll ? declared : type;
  }
  return schemaMode === 'freeze' && type !== null ? type : undefined;
}

const isPinned = (column: StoredColumn, rules: ColumnRules) =>
  column.occurrence === 1 && rules.pinned?.has(column.source) === true;

/** True if a column has a value among cells of these forms. `isNullText`: the cell `null` is one. */
export const hasValues = (forms: CellForms, isNullText: boolean): boolean =>
  (isNullText ? forms : forms & ~NULL_TEXT) !== 0;
