import schema from '../../schemas/destination-config.json' with { type: 'json' };
import validate from '../../schemas/destination-config.validator';
import type { Env } from '../base/env.ts';
import { cleanBaseUrl } from './base-url.ts';
import { type ParsedConfig, parseConfig, serviceProblems, type ValuesOf } from './parse.ts';

/** Converts what the schema cannot express: a choice, and a value that becomes another. */
const configOf = (values: ValuesOf<typeof schema>) => ({
  ...values,
  baseUrl: cleanBaseUrl(values.baseUrl),
  onRejected: values.onRejected as 'fail' | 'continue',
});

/** The destination's configuration: frozen, every default values in. */
export type DestinationConfig = Readonly<ReturnType<typeof configOf>>;

export const parseDestinationConfig = (value: unknown, env: Env): ParsedConfig<DestinationConfig> =>
  parseConfig({ schema, validate, configOf, problems: (values) => serviceProblems(values, 'import_token') }, value, {
    env,
  });
