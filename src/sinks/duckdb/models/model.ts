import type { ColumnType } from '../../../types/type.ts';

/** What the SQL of a model may refer to: it is the same text in a DuckDB file and in the dbt project. */
export interface ModelSource {
  /** The relation with one row an event, as it is written after FROM. */
  readonly logs: string;
  /** The relation with one row an item of an event. */
  readonly items: string;
  /** An event column by its name in the export, as an expression of that type; NULL of that type where there is none. */
  log(source: string, type: ColumnType): string;
  /** An item column by its name in the export, in the same way. */
  item(source: string, type: ColumnType): string;
  /** Local wall-clock TIMESTAMP of an instant of this file; the same expression where the datetimes have no zone. */
  wallClock(instant: string): string;
  /** A VARCHAR[] aggregate: names of the columns of `logs` (neither ids nor system columns) that hold a value. */
  filledProperties(): string;
}

/** A view, or with `parameters` a table macro, of the schema `analytics`. */
export interface Model {
  readonly name: string;
  /** What one row stands for, in a sentence. */
  readonly grain: string;
  /** Column → what it holds: all columns, in their order. */
  readonly columns: Readonly<Record<string, string>>;
  /** Names of the parameters of a table macro. */
  readonly parameters?: readonly string[];
  /** One SELECT statement. `argument`: a parameter as it is written in the statement. */
  sql(source: ModelSource, argument: (parameter: string) => string): string;
}
