import schema from '../../../schemas/destination-config.json' with { type: 'json' };
import type { SpecVerb } from '../../airbyte/connector.ts';
import { spec as specMessage } from '../../airbyte/messages.ts';

const DOCUMENTATION = 'https://github.com/dfinery-elt/dfinery-elt/blob/main/connectors/destination-dfinery';

export const spec: SpecVerb = async () =>
  specMessage({
    protocol_version: '0.2.0',
    documentationUrl: `${DOCUMENTATION}/README.md`,
    changelogUrl: `${DOCUMENTATION}/CHANGELOG.md`,
    connectionSpecification: schema,
    supportsIncremental: true,
    supported_destination_sync_modes: ['append', 'append_dedup'],
  });
