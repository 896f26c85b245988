import schema from '../../schemas/destination-config.json' with { type: 'json' };
import validate from '../../schemas/destination-config.validator';
import type { Env } from '../base/env.ts';
import type { Fields } from './fields.ts';
import { parseConnectorConfig } from './parse.ts';

export const parseDestinationConfig = (rawConfig: unknown, env: Env) =>
  parseConnectorConfig({ schema, validate, makeConfig: (fields: Fields<typeof schema>) => fields }, rawConfig, env);

/** The destination's configuration: frozen, with every default filled in. */
export type DestinationConfig = ReturnType<typeof parseDestinationConfig>['config'];
