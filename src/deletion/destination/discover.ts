import type { DiscoverVerb } from '../../airbyte/connector.ts';
import { destinationCatalog } from '../../airbyte/messages.ts';
import { MATCHING_KEY, PROFILES } from './catalog.ts';
import { configured } from './configured.ts';

/** The one operation there is, for data activation. */
export const discover: DiscoverVerb = async (value, context) => {
  configured(value, context);
  return destinationCatalog([
    {
      object_name: PROFILES,
      sync_mode: 'soft_delete',
      json_schema: {
        $schema: 'http://json-schema.org/draft-07/schema#',
        type: 'object',
        properties: { [MATCHING_KEY]: { type: 'string' } },
        required: [MATCHING_KEY],
        additionalProperties: false,
      },
      matching_keys: [[MATCHING_KEY]],
    },
  ]);
};
