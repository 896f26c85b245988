// This folder: the Airbyte source. `read.ts` opens the service, and reads the profiles, then the days.
// `stream-plans.ts` decides the days of a stream from its saved state. `event-stream.ts` is a stream while it is read,
// `stream-output.ts` tells the platform of it.

import schema from '../../../schemas/source-config.json' with { type: 'json' };
import type { Connector } from '../protocol/connector.ts';
import type { ConnectorSpecification } from '../protocol/messages.ts';

const DOCUMENTATION = 'https://github.com/dfinery-elt/dfinery-elt/blob/main/connectors/source-dfinery';

const spec: ConnectorSpecification = {
  documentationUrl: `${DOCUMENTATION}/README.md`,
  changelogUrl: `${DOCUMENTATION}/CHANGELOG.md`,
  protocol_version: '0.2.0',
  supportsIncremental: true,
  connectionSpecification: schema,
};

/** The Airbyte source. */
export const source: Connector = {
  spec: { files: [], load: async () => async () => ({ type: 'SPEC', spec }) },
  check: { files: ['config'], load: async () => (await import('./check.ts')).check },
  discover: { files: ['config'], load: async () => (await import('./discover.ts')).discover },
  read: { files: ['config', 'catalog'], load: async () => (await import('./read.ts')).read },
};
