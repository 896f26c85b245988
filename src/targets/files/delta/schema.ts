import { DAY_MS } from '../../../base/clock.ts';
import { configError } from '../../../base/errors.ts';
import { DUCKDB_SCALARS, scalarOf } from '../../../cells/types/codec.ts';
import { EVENTS, type Table } from '../../../table/tables.ts';
import { type ColumnTypes, PARTITION_COLUMN, parquetColumns, type TableColumns } from '../file-layout.ts';
import type { MetaData, Protocol } from './protocol/actions.ts';

/** Characters that readers refuse in a column's name. */
const REFUSED_CHARACTERS = /[ ,;{}()\n\t=]/g;

/** A column's name, before equal names are numbered, as every reader of Delta accepts it. */
export const readableName = (source: string): string => source.replaceAll(REFUSED_CHARACTERS, '_');

/**
 * All columns that a file can have. Not every reader of Delta knows a timestamp without a zone. So a table whose
 * datetimes are instants has none: there `_loaded_at` is an instant, too.
 */
export const deltaColumns = (state: TableColumns): ColumnTypes =>
  parquetColumns(state, state.timezone === null ? 'TIMESTAMP' : 'TIMESTAMPTZ');

/** Profiles have no partitions. */
export const partitionColumnsOf = (table: Table['name']): string[] => (table === EVENTS.name ? [PARTITION_COLUMN] : []);

/** The schema of the table with these columns, as the log writes it. */
export function schemaString(state: TableColumns, table: Table['name']): string {
  const fields = [...deltaColumns(state)].map(([name, type]) => {
    const { scalar, isList } = scalarOf(type);
    const { delta } = DUCKDB_SCALARS[scalar];
    return { name, type: isList ? { type: 'array', elementType: delta, containsNull: true } : delta };
  });
  const columns = [...fields, ...partitionColumnsOf(table).map((name) => ({ name, type: 'date' }))];
  return JSON.stringify({
    type: 'struct',
    fields: columns.map((field) => ({ ...field, nullable: true, metadata: {} })),
  });
}

const RETENTION = 'delta.deletedFileRetentionDuration';
const SECONDS = /^interval (\d{1,9}) seconds$/;
/** Default time that files which left a table stay for its readers (ms). */
export const DEFAULT_RETENTION_MS = DAY_MS;

/** The configuration of a table with this retention (ms). */
export const retentionSetting = (retentionMs: number): MetaData['configuration'] => ({
  [RETENTION]: `interval ${Math.ceil(retentionMs / 1_000)} seconds`,
});

/** The time that files which left a table stay for its readers (ms), as its last load set it. */
export function retentionMsOf(metaData: MetaData | undefined): number {
  const seconds = SECONDS.exec(metaData?.configuration[RETENTION] ?? '')?.[1];
  return seconds === undefined ? DEFAULT_RETENTION_MS : Number(seconds) * 1_000;
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

/** Throws a configuration failure for a table that requires what this program does not know. */
export function checkProtocol(protocol: Protocol | undefined, tableAddress: string): void {
  if (protocol === undefined) {
    throw configError(`${tableAddress} has a log without protocol: restore it from a copy.`);
  }
  const { minReaderVersion, minWriterVersion } = protocol;
  const features = new Set([...(protocol.readerFeatures ?? []), ...(protocol.writerFeatures ?? [])]);
  const unknownFeatures = [...features].filter((name) => !KNOWN_FEATURES.has(name)).map((name) => JSON.stringify(name));
  if (minReaderVersion !== READER || minWriterVersion !== WRITER)
    unknownFeatures.push(`${minReaderVersion}/${minWriterVersion}`);
  if (unknownFeatures.length === 0) return;
  throw configError(
    `${tableAddress} has the Delta protocol or feature ${unknownFeatures.join(', ')}, which this program does not ` +
      'know: somebody else made or changed the table. Nothing was done: take the feature away again, or load into ' +
      'another place.',
  );
}
