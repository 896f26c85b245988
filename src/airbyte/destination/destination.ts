// This folder: the Airbyte destination. `check.ts` and `write.ts` are its verbs. `write.ts` reads `input-messages.ts`,
// refuses streams by `deletable-streams.ts`, and gives states back by `state-queue.ts`.

import schema from '../../../schemas/destination-config.json' with { type: 'json' };
import type { Connector } from '../protocol/connector.ts';
import type { ConnectorSpecification } from '../protocol/messages.ts';

const DOCUMENTATION = 'https://github.com/dfinery-elt/dfinery-elt/blob/main/connectors/destination-dfinery';

const spec: ConnectorSpecification = {
  protocol_version: '0.2.0',
  documentationUrl: `${DOCUMENTATION}/README.md`,
  changelogUrl: `${DOCUMENTATION}/CHANGELOG.md`,
  connectionSpecification: schema,
  supportsIncremental: true,
  supported_destination_sync_modes: ['append', 'append_dedup'],
};

/** The Airbyte destination. */
export const destination: Connector = {
  spec: { files: [], load: async () => async () => ({ type: 'SPEC', spec }) },
  check: { files: ['config'], load: async () => (await import('./check.ts')).check },
  write: { files: ['config', 'catalog'], load: async () => (await import('./write.ts')).write },
};
