import schema from '../../schemas/destination-config.json' with { type: 'json' };
import validate from '../../schemas/destination-config.validator';
import type { Env } from '../base/env.ts';
import type { FieldsOf } from './fields.ts';
import { parseForConnector } from './parse.ts';

export const parseDestinationConfig = (rawConfig: unknown, env: Env) =>
  parseForConnector({ schema, validate, configOf: (fields: FieldsOf<typeof schema>) => fields }, rawConfig, env);

/** The destination's configuration: frozen, with every default filled in. */
export type DestinationConfig = ReturnType<typeof parseDestinationConfig>['config'];
