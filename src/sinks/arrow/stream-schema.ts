import { Field, Schema, Utf8 } from 'apache-arrow';
import { EVENT_NAME } from '../../schema/groups.ts';
import { TYPES } from '../../types/index.ts';
import type { Typed } from '../sql/columns/typed.ts';
import { builderOf, type ColumnBuilder } from './column-builders.ts';
import { DictionaryBuilder } from './dictionary-builder.ts';

/** The columns of a stream, with what builds each, in order: `_key`, those of the export, `_rescued`. */
export interface StreamSchema {
  readonly schema: Schema;
  readonly columns: readonly Typed[];
  readonly builders: readonly ColumnBuilder[];
}

export function streamSchema(columns: readonly Typed[], zoned: boolean, version: string): StreamSchema {
  const own = () => builderOf({ kind: 'utf8' });
  const typed = columns.map((column) => {
    const isDictionary = column.source === EVENT_NAME && column.occurrence === 1 && column.type === 'string';
    return isDictionary ? new DictionaryBuilder() : builderOf(TYPES[column.type].arrow(zoned));
  });
  const fields = columns.map(({ name, source, group, type }, i) => {
    return new Field(name, typed[i].type, true, new Map(Object.entries({ source, group, type })));
  });
  const all = [new Field('_key', new Utf8(), true), ...fields, new Field('_rescued', new Utf8(), true)];
  return {
    schema: new Schema(all, new Map([['dfinery.version', version]])),
    columns,
    builders: [own(), ...typed, own()],
  };
}
