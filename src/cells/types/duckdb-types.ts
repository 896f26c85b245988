/** DuckDB's scalar types, as DESCRIBE prints them (but for TIMESTAMPTZ), with those of Delta and Arrow's JSON. */
export const SCALAR_TYPES = {
  BOOLEAN: { delta: 'boolean', arrow: { name: 'bool' } },
  BIGINT: { delta: 'long', arrow: { name: 'int', bitWidth: 64, isSigned: true } },
  DOUBLE: { delta: 'double', arrow: { name: 'floatingpoint', precision: 'DOUBLE' } },
  DATE: { delta: 'date', arrow: { name: 'date', unit: 'DAY' } },
  TIMESTAMP: { delta: 'timestamp_ntz', arrow: { name: 'timestamp', unit: 'MICROSECOND' } },
  TIMESTAMPTZ: { delta: 'timestamp', arrow: { name: 'timestamp', unit: 'MICROSECOND', timezone: 'UTC' } },
  VARCHAR: { delta: 'string', arrow: { name: 'utf8' } },
} as const;

export type DuckDbScalar = keyof typeof SCALAR_TYPES;
export type DuckDbType = DuckDbScalar | `${DuckDbScalar}[]`;

/** A column of a table or of a file. Its type is one of these; JSON counts as VARCHAR. */
export interface DuckDbColumn {
  readonly name: string;
  readonly type: DuckDbType;
}

export function scalarOf(type: DuckDbType): { readonly scalar: DuckDbScalar; readonly isList: boolean } {
  return { scalar: type.replace(/\[\]$/, '') as DuckDbScalar, isList: type.endsWith('[]') };
}
