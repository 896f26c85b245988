import { readFileSync } from 'node:fs';

/** The environment as a plain lookup: injected, so that nothing else touches `process.env`. */
export type Env = (name: string) => string | undefined;

export const systemEnv: Env = (name) => process.env[name];

/** A secret from `NAME`, or from the file that `NAME_FILE` names (one trailing line end dropped). Throws when unreadable. */
export function secretFrom(env: Env, name: string): string | undefined {
  const direct = env(name);
  if (direct !== undefined && direct !== '') return direct;
  const file = env(`${name}_FILE`);
  if (file === undefined || file === '') return undefined;
  return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
}
