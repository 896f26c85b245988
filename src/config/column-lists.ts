import { isObject } from '../base/json.ts';
import { MIN_KEY_LENGTH } from '../base/secrets.ts';
import { KNOWN_COLUMNS } from '../cells/columns/groups.ts';
import type { Problem } from './problems.ts';

const KNOWN = [...KNOWN_COLUMNS.values()];
/** Columns that may not be dropped: every export has them, and tables, keys and days are made of them. */
const REQUIRED = new Set(
  KNOWN.filter(({ required }) => required).flatMap(({ name, alternative }) => [name, alternative ?? name]),
);
/** Columns that may not be hashed: days, partitions and the cursor come from them. */
const DATETIME_NAMES = new Set(KNOWN.filter(({ type }) => type === 'datetime').map(({ name }) => name));

/** The problems of `columns_drop`, `columns_hash` and `hash_key` in combination. */
export function columnListProblems(filled: Readonly<Record<string, unknown>>): Problem[] {
  const drop = namesOf(filled.columns_drop);
  const hash = namesOf(filled.columns_hash);
  const types = isObject(filled.column_types) ? filled.column_types : {};
  const problems: Problem[] = [];
  const refuse = (key: string, names: readonly string[], text: (names: string) => string) => {
    if (names.length > 0) problems.push({ key, text: text([...new Set(names)].join(', ')) });
  };
  refuse(
    'columns_drop',
    drop.filter((name) => REQUIRED.has(name)),
    (names) =>
      `columns_drop has ${names}: every export has that, and every target needs it; where it names a person, hash it`,
  );
  refuse(
    'columns_hash',
    hash.filter((name) => DATETIME_NAMES.has(name)),
    (names) => `columns_hash has ${names}: days and the cursor come from such times, which cannot be hashed`,
  );
  refuse(
    'columns_hash',
    hash.filter((name) => drop.includes(name)),
    (names) => `columns_drop and columns_hash both have ${names}, wanted one of them for each column`,
  );
  refuse(
    'column_types',
    hash.filter((name) => Object.hasOwn(types, name) && types[name] !== 'string'),
    (names) => `column_types gives ${names} another type than string, and columns_hash makes it a text of hex digits`,
  );
  return hash.length === 0 ? problems : [...problems, ...keyProblems(filled.hash_key)];
}

function keyProblems(key: unknown): Problem[] {
  if (key === undefined || key === '') {
    return [{ key: 'hash_key', text: 'hash_key (DFINERY_HASH_KEY) is missing beside columns_hash' }];
  }
  if (typeof key !== 'string' || key.length >= MIN_KEY_LENGTH) return [];
  const make = 'make one, for instance with "openssl rand -hex 32"';
  return [
    { key: 'hash_key', text: `hash_key (DFINERY_HASH_KEY) is shorter than ${MIN_KEY_LENGTH} characters: ${make}` },
  ];
}

const namesOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((name): name is string => typeof name === 'string') : [];
