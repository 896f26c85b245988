import validSchema from '../../../schemas/delta-log.schema.validator';
import { configError } from '../../base/errors.ts';
import { firstProblem } from '../../base/validator.ts';
import { DUCKDB_SCALARS } from '../../cells/types/type.ts';
import { scalarOf } from '../../engine/conversions.ts';
import type { Engine } from '../../engine/session/engine.ts';
import type { TableName } from '../../table/columns.ts';
import { foldName } from '../../table/names.ts';
import type { TableState } from '../../table/state.ts';
import { describeTable } from '../files/file-columns.ts';
import { PARTITION_COLUMN } from '../files/parquet-file.ts';
import { damagedError, type Protocol, parseJson } from './protocol/entry.ts';

/** A column of a table: its name and its type as the log writes it. */
export interface DeltaField {
  readonly name: string;
  /** What others say of it, as a comment. */
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly type: string | { readonly type: 'array'; readonly elementType: string; readonly containsNull: true };
}

/** Characters that readers refuse in a column's name. */
const REFUSED_CHARACTERS = /[ ,;{}()\n\t=]/g;

/** A column's name, before equal names are numbered, as every reader of Delta accepts it. */
export const readableName = (source: string): string => source.replaceAll(REFUSED_CHARACTERS, '_');

/** The columns that a table's files can have, in their order; the partition's column is not among them. */
export async function fieldsOf(engine: Engine, table: TableName, state: TableState): Promise<DeltaField[]> {
  const described = await describeTable(engine, table, state);
  return described.map(({ name, type }) => {
    const { scalar, isList } = scalarOf(type);
    const { delta } = DUCKDB_SCALARS[scalar];
    return { name, type: isList ? { type: 'array', elementType: delta, containsNull: true } : delta };
  });
}

/**
 * The schema of a table with these columns. Of `before`, that of the log, what another program added stays: columns,
 * and comments on our own. Names that readers take for the same are one column (`foldName`).
 */
export function schemaString(fields: readonly DeltaField[], before: readonly DeltaField[]): string {
  const own = [...fields, { name: PARTITION_COLUMN, type: 'date' }];
  const keyOf = ({ name }: Pick<DeltaField, 'name'>) => foldName(name);
  const stored = new Map(before.map((field) => [keyOf(field), field]));
  const written = own.map((field) => ({
    name: field.name,
    type: field.type,
    nullable: true,
    metadata: stored.get(keyOf(field))?.metadata ?? {},
  }));
  for (const field of own) stored.delete(keyOf(field));
  return JSON.stringify({ type: 'struct', fields: [...written, ...stored.values()] });
}

/** The columns of a schema in a log; empty if the log has none. Throws UserError for a text that is no schema. */
export function fieldsIn(text: string | undefined, place: string): readonly DeltaField[] {
  const where = `${place} (schemaString)`;
  const value = parseJson(text ?? '{}', where);
  if (!validSchema<{ readonly fields?: readonly DeltaField[] }>(value)) {
    throw damagedError(where, firstProblem(validSchema));
  }
  return value.fields ?? [];
}

const READER = 3;
const WRITER = 7;
const DOMAINS = 'domainMetadata';
const LOCAL_TIMES_FEATURE = 'timestampNtz';
const KNOWN_FEATURES: ReadonlySet<string> = new Set([DOMAINS, LOCAL_TIMES_FEATURE]);

/** The protocol of a new table: the features that it uses, and no others. `asInstants`: its datetimes are instants. */
export function protocolOf(asInstants: boolean): Protocol {
  return {
    minReaderVersion: READER,
    minWriterVersion: WRITER,
    readerFeatures: asInstants ? [] : [LOCAL_TIMES_FEATURE],
    writerFeatures: asInstants ? [DOMAINS] : [DOMAINS, LOCAL_TIMES_FEATURE],
  };
}

/** True if a protocol has the features of the columns: a first run that died may have had another time zone. */
export function supports(protocol: Protocol | undefined, asInstants: boolean): boolean {
  const needed = protocolOf(asInstants);
  return (['readerFeatures', 'writerFeatures'] as const).every((kind) =>
    needed[kind]?.every((name) => protocol?.[kind]?.includes(name) === true),
  );
}

/** Throws a configuration failure for a table that requires features which this program does not know. */
export function checkProtocol(protocol: Protocol, table: string): void {
  const { minReaderVersion, minWriterVersion } = protocol;
  const features = [...(protocol.readerFeatures ?? []), ...(protocol.writerFeatures ?? [])];
  const unknownFeatures = [...new Set(features)].filter((name) => !KNOWN_FEATURES.has(name));
  if (unknownFeatures.length > 0) {
    throw configError(
      `${table} uses the Delta feature ${unknownFeatures.map((name) => JSON.stringify(name)).join(', ')}, which this program does ` +
        'not know: somebody else changed the table. Nothing was done: take the feature away again, or load into another place.',
    );
  }
  if (minReaderVersion === READER && minWriterVersion === WRITER) return;
  throw configError(
    `${table} has protocol ${minReaderVersion}/${minWriterVersion}, wanted ${READER}/${WRITER}: it is not a table of this ` +
      'program, or somebody else changed it. Nothing was done: load into another place.',
  );
}
