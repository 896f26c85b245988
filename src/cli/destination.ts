import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import schema from '../../schemas/destination-config.json' with { type: 'json' };
import { configError } from '../base/errors.ts';
import { type DestinationConfig, parseDestinationConfig } from '../config/destination.ts';
import { readEnvironment, variableOf } from '../config/environment.ts';
import { objectOf } from '../config/parse.ts';
import { readJsonFile } from '../fs/json-file.ts';
import type { PlaceOptions } from '../targets/contract.ts';
import { duration, text, type ValuesOf, withDefault } from './command.ts';
import type { Context } from './context.ts';

// The configuration of forget and person before the object erasure: to be removed with their rewrite.

export const DESTINATION_FILE = 'dfinery-destination.json';

export function loadDestinationConfig(
  path: string | undefined,
  { env, redactor }: Context,
  placeholders?: object,
): DestinationConfig {
  const environment = readEnvironment(schema, env);
  const isThere = path !== undefined || existsSync(DESTINATION_FILE);
  const missing = isThere || placeholders ? [] : schema.required.filter((key) => !environment.names.has(key));
  if (missing.length > 0) {
    const variables = missing.map(variableOf).join(', ');
    throw configError(
      `there is no ${DESTINATION_FILE} here: write one, name another with --config, or set ${variables}.`,
    );
  }
  const file = isThere ? objectOf(readJsonFile(path ?? DESTINATION_FILE, 'the configuration file')) : {};
  const value = { ...placeholders, ...file, ...environment.values };
  const { config, secrets, unknown } = parseDestinationConfig(value, () => undefined, environment.names);
  for (const secret of secrets) redactor.add(secret);
  if (unknown.length > 0) throw configError(`the configuration has unknown keys: ${unknown.join(', ')}.`);
  return config;
}

/** For a command that only reads a ledger and needs no token; undefined if no service is configured. */
export function findDestinationConfig(path: string | undefined, context: Context): DestinationConfig | undefined {
  const { names } = readEnvironment(schema, context.env);
  const isWanted = path !== undefined || existsSync(DESTINATION_FILE) || names.has('service_id');
  return isWanted ? loadDestinationConfig(path, context, { import_token: '-' }) : undefined;
}

export const PLACE_OPTIONS = {
  lockWait: withDefault('30s', duration('How long to wait for a place in use')),
  spoolDir: text('Spool folder; default DFINERY_SPOOL_DIR, else the temporary folder of the system'),
};

export function placeOptions(
  { lockWait, spoolDir }: ValuesOf<typeof PLACE_OPTIONS>,
  { clock, logger, signal, env }: Context,
): PlaceOptions {
  const folder = spoolDir ?? (env('DFINERY_SPOOL_DIR') || tmpdir());
  return { lockWaitMs: lockWait, spoolDir: folder, env, clock, logger, signal };
}
