// This folder: the Airbyte source, one verb a file, each loaded when it is called. `streams/` plans and reports the
// configured streams.

import schema from '../../../schemas/source-config.json' with { type: 'json' };
import type { Connector } from '../protocol/connector.ts';

const DOCUMENTATION = 'https://github.com/dfinery-elt/dfinery-elt/blob/main/connectors/source-dfinery';

/**
 * The Airbyte source. `read` plans each stream, cuts the plans into segments of days that the same streams want, and
 * writes records and states.
 */
export const SOURCE: Connector = {
  spec: {
    documentationUrl: `${DOCUMENTATION}/README.md`,
    changelogUrl: `${DOCUMENTATION}/CHANGELOG.md`,
    protocol_version: '0.2.0',
    supportsIncremental: true,
    connectionSpecification: schema,
  },
  check: async () => (await import('./check.ts')).checkVerb,
  discover: async () => (await import('./discover.ts')).discoverVerb,
  read: async () => (await import('./read.ts')).readVerb,
};
