import schema from '../../schemas/destination-config.json' with { type: 'json' };
import validate from '../../schemas/destination-config.validator';
import type { Env } from '../base/env.ts';
import { parseForConnector } from './parse.ts';
import type { ValuesOf } from './values.ts';

export const parseDestinationConfig = (rawConfig: unknown, env: Env) =>
  parseForConnector({ schema, validate, configOf: (values: ValuesOf<typeof schema>) => values }, rawConfig, env);

/** The destination's configuration: frozen, with every default filled in. */
export type DestinationConfig = ReturnType<typeof parseDestinationConfig>['config'];
