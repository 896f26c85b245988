import { configError } from '../../../../base/errors.ts';
import type { Protocol } from './actions.ts';

const READER_VERSION = 3;
const WRITER_VERSION = 7;
const DOMAINS_FEATURE = 'domainMetadata';
const LOCAL_TIMES_FEATURE = 'timestampNtz';
const KNOWN_FEATURES: ReadonlySet<string> = new Set([DOMAINS_FEATURE, LOCAL_TIMES_FEATURE]);

/** The protocol of a new table: the features that it uses, and no others. `hasInstants`: its datetimes are instants. */
export const newTableProtocol = (hasInstants: boolean): Protocol => ({
  minReaderVersion: READER_VERSION,
  minWriterVersion: WRITER_VERSION,
  readerFeatures: hasInstants ? [] : [LOCAL_TIMES_FEATURE],
  writerFeatures: hasInstants ? [DOMAINS_FEATURE] : [DOMAINS_FEATURE, LOCAL_TIMES_FEATURE],
});

/** Throws a configuration failure for a table that requires what this program does not know. */
export function checkProtocol(protocol: Protocol | undefined, tableAddress: string): void {
  if (protocol === undefined) throw configError(`${tableAddress} has a log without protocol: restore it from a copy.`);
  const { minReaderVersion, minWriterVersion } = protocol;
  const features = new Set([...(protocol.readerFeatures ?? []), ...(protocol.writerFeatures ?? [])]);
  const unsupported = [...features].filter((name) => !KNOWN_FEATURES.has(name)).map((name) => JSON.stringify(name));
  if (minReaderVersion !== READER_VERSION || minWriterVersion !== WRITER_VERSION)
    unsupported.push(`${minReaderVersion}/${minWriterVersion}`);
  if (unsupported.length === 0) return;
  throw configError(
    `${tableAddress} has the Delta protocol or feature ${unsupported.join(', ')}, which this program does not ` +
      'know: somebody else made or changed the table. Nothing was done: take the feature away again, or load into ' +
      'another place.',
  );
}
