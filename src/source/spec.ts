import schema from '../../schemas/source-config.json' with { type: 'json' };
import type { SpecVerb } from '../airbyte/connector.ts';
import { spec } from '../airbyte/messages.ts';

const PROTOCOL_VERSION = '0.2.0';
const DOCUMENTATION = 'https://github.com/dfinery-elt/dfinery-elt/blob/main/connectors/source-dfinery';

/** The `spec` verb: the configuration's schema, unchanged. */
export const specVerb: SpecVerb = async () =>
  spec({
    documentationUrl: `${DOCUMENTATION}/README.md`,
    changelogUrl: `${DOCUMENTATION}/CHANGELOG.md`,
    protocol_version: PROTOCOL_VERSION,
    supportsIncremental: true,
    connectionSpecification: schema,
  });
