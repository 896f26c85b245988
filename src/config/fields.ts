import { cleanBaseUrl } from '../base/address.ts';
import type { JsonObject } from '../base/json.ts';
import { Secret } from '../base/secrets.ts';
import type { ConfigSchema, KeySchema } from './keys.ts';

/** The fields of values that fit the schema, by key in camel case. A secret is wrapped, and an address cleaned. */
export function toFields<S extends ConfigSchema>({ properties }: S, values: JsonObject): Fields<S> {
  const entries = Object.entries(properties).map(([key, schema]) => [camelCase(key), toField(values[key], schema)]);
  return Object.fromEntries(entries);
}

export const camelCase = (key: string): string => key.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

function toField(value: unknown, { airbyte_secret: isSecret, format }: KeySchema): unknown {
  if (typeof value !== 'string') return value;
  if (isSecret) return new Secret(value);
  return format === 'uri' ? cleanBaseUrl(value) : value;
}

/** The types of these fields: `exportToken`, `columnsDrop`, `lookbackDays`, `serviceId` and so on. */
export type Fields<S extends ConfigSchema> = {
  readonly [K in keyof S['properties'] & string as CamelCase<K>]: K extends keyof TypesByKey
    ? TypesByKey[K]
    : FieldType<S['properties'][K]>;
};

/**
 * The type of a field by the schema of its key:
 *
 *   export_token    "airbyte_secret": true    Secret | undefined
 *   columns_drop    "default": []             readonly string[]
 *   lookback_days   "default": 3              number
 *   service_id      neither                   string | undefined
 */
type FieldType<P> = P extends { airbyte_secret: boolean }
  ? Secret | undefined
  : P extends { default: never[] }
    ? readonly string[]
    : P extends { default: infer D }
      ? D
      : string | undefined;

type Condition = 'all' | 'include' | 'exclude';

/** The types of choices and of objects by key, which TypeScript does not read from a schema. */
interface TypesByKey {
  readonly events_condition_type: Condition | undefined;
  readonly properties_condition_type: Condition | undefined;
  readonly to_date_inclusive: 'auto' | 'true' | 'false';
  readonly on_gap: 'fail' | 'warn';
  readonly schema_mode: 'evolve' | 'freeze';
  readonly on_rejected: 'fail' | 'continue';
  readonly column_types: Readonly<Record<string, string>>;
  readonly places: readonly { readonly target: string; readonly place: string }[] | undefined;
}

type CamelCase<K extends string> = K extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : K;

/** The keys that a connector needs, and of the command line some commands. */
export type RequiredKey = 'base_url' | 'service_id' | 'export_token' | 'import_token';

/** A configuration in which the fields of these keys are not missing: with `base_url`, `baseUrl` is a string. */
export type ConfigWith<C, K extends RequiredKey> = Readonly<C> & {
  readonly [F in keyof C & CamelCase<K>]: NonNullable<C[F]>;
};
