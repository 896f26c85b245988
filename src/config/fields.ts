// The types of the fields that a schema gives a configuration. They have no code: its validator checks the values.

import type { Secret } from '../base/secrets.ts';
import type { ColumnType } from '../cells/types/column-types.ts';
import type { ConfigSchema } from './environment.ts';

/**
 * The fields of the values that a schema found valid, by key in camel case. `lookback_days` with `"default": 3` gives
 * `lookbackDays: number`. `base_url` without a default may be missing: `baseUrl: string | undefined`. A secret,
 * `export_token`, gives `exportToken: Secret | undefined`. `columns_drop` with `"default": []` gives a list of strings.
 */
export type FieldsOf<S extends ConfigSchema> = {
  readonly [K in keyof S['properties'] & string as CamelCase<K>]: K extends keyof DeclaredTypes
    ? DeclaredTypes[K]
    : FieldOf<S['properties'][K]>;
};

/** The type of a field by the schema of its key. A test holds the schemas to it. */
type FieldOf<P> = P extends { airbyte_secret: boolean }
  ? Secret | undefined
  : P extends { default: infer D }
    ? D extends never[]
      ? readonly string[]
      : D
    : string | undefined;

type Condition = 'all' | 'include' | 'exclude';

/** The types of choices and of objects, which TypeScript does not read from a schema. */
interface DeclaredTypes {
  readonly events_condition_type: Condition | undefined;
  readonly properties_condition_type: Condition | undefined;
  readonly to_date_inclusive: 'auto' | 'true' | 'false';
  readonly on_gap: 'fail' | 'warn';
  readonly schema_mode: 'evolve' | 'freeze';
  readonly on_rejected: 'fail' | 'continue';
  /** A rule of `source.ts` checks the types. */
  readonly column_types: Readonly<Record<string, ColumnType>>;
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
