import type { Env } from '../../src/base/env.ts';

/** An environment of exactly these. */
export const envOf = (values: Readonly<Record<string, string | undefined>>): Env =>
  Object.assign((name: string) => values[name], { names: () => Object.keys(values) });
