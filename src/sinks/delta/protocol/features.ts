import { configError } from '../../../base/errors.ts';
import type { Protocol } from './actions.ts';

const READER = 3;
const WRITER = 7;
const DOMAINS = 'domainMetadata';
const LOCAL_TIMES = 'timestampNtz';
const KNOWN: ReadonlySet<string> = new Set([DOMAINS, LOCAL_TIMES]);

/** The protocol of a table of ours: what is used and nothing else. `asInstants`: its datetimes are instants. */
export function protocolOf(asInstants: boolean): Protocol {
  return {
    minReaderVersion: READER,
    minWriterVersion: WRITER,
    readerFeatures: asInstants ? [] : [LOCAL_TIMES],
    writerFeatures: asInstants ? [DOMAINS] : [DOMAINS, LOCAL_TIMES],
  };
}

/** True if a table's protocol has all that its columns need: one whose first run died may be of another time zone. */
export function supports(protocol: Protocol | undefined, asInstants: boolean): boolean {
  const needed = protocolOf(asInstants);
  return (['readerFeatures', 'writerFeatures'] as const).every((kind) =>
    needed[kind]?.every((name) => protocol?.[kind]?.includes(name) === true),
  );
}

/** Throws a configuration failure for a table that requires features unknown to this program. */
export function checkProtocol(protocol: Protocol, table: string): void {
  const { minReaderVersion, minWriterVersion } = protocol;
  const features = [...(protocol.readerFeatures ?? []), ...(protocol.writerFeatures ?? [])];
  const strange = [...new Set(features)].filter((name) => !KNOWN.has(name));
  if (strange.length > 0) {
    throw configError(
      `${table} uses the Delta feature ${strange.map((name) => JSON.stringify(name)).join(', ')}, which this program does ` +
        'not know: somebody else changed the table. Nothing was done: take the feature away again, or load into another place.',
    );
  }
  if (minReaderVersion === READER && minWriterVersion === WRITER) return;
  throw configError(
    `${table} has protocol ${minReaderVersion}/${minWriterVersion}, wanted ${READER}/${WRITER}: it is not a table of this ` +
      'program, or somebody else changed it. Nothing was done: load into another place.',
  );
}
