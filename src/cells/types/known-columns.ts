import columns from '../../../schemas/columns.json' with { type: 'json' };
import { type ColumnType, isColumnType } from './type.ts';

/** The groups of columns, which follow from the name alone. */
const COLUMN_GROUPS = ['unified_id', 'system', 'standard', 'standard_item', 'custom_item', 'custom'] as const;
export type ColumnGroup = (typeof COLUMN_GROUPS)[number];

/** A column of `schemas/columns.json`. */
interface KnownColumn {
  readonly name: string;
  readonly group: ColumnGroup;
  readonly type: ColumnType;
  /** True if every export has the column, under this name or its alternative. */
  readonly required: boolean;
  readonly alternative: string | undefined;
}

type RawColumn = (typeof columns.columns)[number] & { readonly required?: boolean; readonly alternative?: string };

function known({ name, group: groupName, type, required = false, alternative }: RawColumn): KnownColumn {
  const group = COLUMN_GROUPS.find((name) => name === groupName);
  if (group === undefined || !isColumnType(type)) throw new TypeError(`columns.json: ${name}`);
  return { name, group, type, required, alternative };
}

/** The columns whose meaning the service fixes, by name. */
export const KNOWN_COLUMNS: ReadonlyMap<string, KnownColumn> = new Map(columns.columns.map((c) => [c.name, known(c)]));
