import { tmpdir } from 'node:os';
import schema from '../../schemas/local-config.json' with { type: 'json' };
import valid from '../../schemas/local-config.validator';
import { DAY_MS, parseDuration } from '../base/durations.ts';
import { type ParsedConfig, parseConfig, type ValuesOf } from './parse.ts';

const configOf = ({ lockWait, retention, memoryLimit, spoolDir }: ValuesOf<typeof schema>) => ({
  memoryLimit,
  lockWaitMs: parseDuration(lockWait) ?? 90_000,
  retentionMs: parseDuration(retention) ?? DAY_MS,
  spoolDir: spoolDir ?? tmpdir(),
});

/** The keys that the command line alone has: how it works with places on this machine. */
export type LocalConfig = Readonly<ReturnType<typeof configOf>>;

/** `names`: the environment variables that gave keys. */
export const parseLocalConfig = (value: unknown, names: ReadonlyMap<string, string>): ParsedConfig<LocalConfig> =>
  parseConfig({ schema, valid, configOf }, value, () => undefined, names);
