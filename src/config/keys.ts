import { nearest } from './nearest.ts';

/** The part of a JSON schema that a configuration has. */
export type ConfigSchema = {
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, KeySchema>>;
};

/** The schema of one key. */
export interface KeySchema {
  readonly type?: string;
  /** `uri` is an address to which something is sent; `path` is relative to the folder of the file that has it. */
  readonly format?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly airbyte_secret?: boolean;
  /** Of a list: the schema of its members. */
  readonly items?: { readonly type?: string };
}

/** A key with its schema and its variable. */
export interface ConfigKey {
  readonly key: string;
  /** Its environment variable: `DFINERY_` and the key in capitals. */
  readonly variableName: string;
  readonly schema: KeySchema;
}

export const VARIABLE_PREFIX = 'DFINERY_';

export const configKeysOf = ({ properties }: ConfigSchema): ConfigKey[] =>
  Object.entries(properties).map(([key, schema]) => {
    return { key, variableName: `${VARIABLE_PREFIX}${key.toUpperCase()}`, schema };
  });

/**
 * A text for each key that is not known: `lookbackdays (did you mean lookback_days?)`. One that begins with `_` is a
 * comment. `elsewhere`: keys that belong in another object, and where that is.
 */
export function unknownKeyTexts(
  configKeys: readonly ConfigKey[],
  rawValues: object,
  elsewhere?: { readonly configKeys: readonly ConfigKey[]; readonly where: string },
): string[] {
  const keys = configKeys.map(({ key }) => key);
  const unknownKeys = Object.keys(rawValues).filter((key) => !keys.includes(key) && !key.startsWith('_'));
  return unknownKeys.map((key) => {
    if (elsewhere?.configKeys.some((configKey) => configKey.key === key)) return `${key} (wanted ${elsewhere.where})`;
    const nearKey = nearest(key, keys);
    return nearKey === undefined ? key : `${key} (did you mean ${nearKey}?)`;
  });
}
