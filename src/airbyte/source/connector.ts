// This folder: the Airbyte source, one verb a file. `read` plans each configured stream (`plan.ts`), downloads the days
// that the streams want, and hands each day to them (`stream.ts`). `schemas.ts` has what `discover` says of the streams.

import schema from '../../../schemas/source-config.json' with { type: 'json' };
import type { Connector } from '../protocol/connector.ts';

const DOCUMENTATION = 'https://github.com/dfinery-elt/dfinery-elt/blob/main/connectors/source-dfinery';

/** The Airbyte source. Each verb is loaded when it is called. */
export const source: Connector = {
  spec: {
    documentationUrl: `${DOCUMENTATION}/README.md`,
    changelogUrl: `${DOCUMENTATION}/CHANGELOG.md`,
    protocol_version: '0.2.0',
    supportsIncremental: true,
    connectionSpecification: schema,
  },
  check: async () => (await import('./check.ts')).check,
  discover: async () => (await import('./discover.ts')).discover,
  read: async () => (await import('./read.ts')).read,
};
