import { tmpdir } from 'node:os';
import schema from '../../schemas/local-config.json' with { type: 'json' };
import validate from '../../schemas/local-config.validator';
import { parseDuration } from '../base/durations.ts';
import { systemError } from '../base/errors.ts';
import { type ParsedConfig, parseConfig, type ValuesOf } from './parse.ts';
import type { Problem } from './problems.ts';

/** The folder of downloads where none is configured; a connector has no such key. */
export const defaultSpoolDir = (): string => tmpdir();

const configOf = ({ target, place, lockWait, retention, memoryLimit, spoolDir }: ValuesOf<typeof schema>) => ({
  target,
  place,
  memoryLimit,
  lockWaitMs: durationOf(lockWait),
  retentionMs: durationOf(retention),
  spoolDir: spoolDir ?? defaultSpoolDir(),
});

/** Milliseconds of a duration that the schema has checked. */
function durationOf(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined) throw systemError(`The schema lets a duration pass that cannot be read: ${text}.`);
  return ms;
}

/** The keys that the command line alone has: how it works with places on this machine. */
export type LocalConfig = Readonly<ReturnType<typeof configOf>>;

/** `names`: the environment variables that gave keys. */
export const parseLocalConfig = (value: unknown, names: ReadonlyMap<string, string>): ParsedConfig<LocalConfig> =>
  parseConfig({ schema, validate, configOf, problems }, value, { names });

function problems({ target, place }: Readonly<Record<string, unknown>>): Problem[] {
  if ((target === undefined) === (place === undefined)) return [];
  const key = target === undefined ? 'target' : 'place';
  return [{ key, text: `${key} is missing: target and place go together` }];
}
