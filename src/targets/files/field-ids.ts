import { literal } from '../../cells/types/sql.ts';
import type { TableName } from '../../table/columns.ts';

export interface Field {
  readonly name: string;
  /** Type of the column in the table's format. */
  readonly type: string;
  /** Type of the elements of a list; absent for other columns. */
  readonly element?: string;
}

/** A column with its id in the table's format; for a list, `element` has the id and type of its elements. */
export interface IdentifiedColumn {
  readonly id: number;
  readonly name: string;
  readonly type: string;
  readonly element?: { readonly id: number; readonly type: string };
}

export interface IdentifiedTable {
  readonly columns: readonly IdentifiedColumn[];
  /** The highest id that a column of the table ever had. */
  readonly lastColumnId: number;
}

/**
 * The ids of the columns of tables, that of the date included: committed ones, and new ones that a table gets with the
 * next commit. A retyped column keeps its id, since all live files that have it are written anew in that commit.
 */
export class FieldIds {
  readonly #tables: ReadonlyMap<TableName, IdentifiedTable>;
  readonly #last = new Map<TableName, number>();
  /** The columns that have ids, by table, name and whether they are lists. */
  readonly #given = new Map<string, IdentifiedColumn>();

  constructor(tables: ReadonlyMap<TableName, IdentifiedTable>) {
    this.#tables = tables;
  }

  columnOf(table: TableName, { name, type, element }: Field): IdentifiedColumn {
    const key = JSON.stringify([table, name, element !== undefined]);
    const known = this.#tables.get(table)?.columns.find((one) => one.name === name);
    const before = this.#given.get(key) ?? known;
    const id = before?.id ?? this.#next(table);
    const column: IdentifiedColumn =
      element === undefined
        ? { id, name, type }
        : { id, name, type, element: { id: before?.element?.id ?? this.#next(table), type: element } };
    this.#given.set(key, column);
    return column;
  }

  /** The option of COPY that writes the ids of these columns into a file, for `Layout.fieldIds`. */
  option(table: TableName, fields: readonly Field[]): string {
    const entries = fields.map((field) => {
      const { id, element } = this.columnOf(table, field);
      const ids = element === undefined ? id : `{'__duckdb_field_id': ${id}, 'element': ${element.id}}`;
      return `${literal(field.name)}: ${ids}`;
    });
    return `FIELD_IDS {${entries.join(', ')}}`;
  }

  #next(table: TableName): number {
    const id = (this.#last.get(table) ?? this.#tables.get(table)?.lastColumnId ?? 0) + 1;
    this.#last.set(table, id);
    return id;
  }
}
