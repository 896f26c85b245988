/** True if a value fits one of our schemas, and so has type T. It then has the defaults of the schema. */
export interface Validator {
  <T>(value: unknown): value is T;
  readonly errors?: readonly SchemaError[] | null;
}

export interface SchemaError {
  /** Path of the faulty part of the value, such as `/hashed/0/columns`; empty for the value itself. */
  readonly instancePath: string;
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message?: string;
  /** The schema that has the keyword. */
  readonly parentSchema?: Readonly<Record<string, unknown>>;
}

/** The problems of the last value: `files/0/path must be string`, or `it must be object` of the whole value. */
export const problemTexts = (validate: Validator): string[] => (validate.errors ?? []).map(problemText);

function problemText({ instancePath, message = 'is wrong', params }: SchemaError): string {
  const subject = instancePath.slice(1) || 'it';
  const { allowedValue: constant, additionalProperty: unknownKey } = params;
  if (unknownKey !== undefined) return `${subject} has the unknown key ${unknownKey}`;
  return `${subject} ${constant === undefined ? message : `must be ${constant}`}`;
}
