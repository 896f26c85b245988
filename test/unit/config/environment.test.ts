import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import erasure from '../../../schemas/erasure-config.json' with { type: 'json' };
import local from '../../../schemas/local-config.json' with { type: 'json' };
import source from '../../../schemas/source-config.json' with { type: 'json' };
import { CONFIG_KEYS } from '../../../src/cli/configuration.ts';
import { readVariables, refuseUnknownVariables, variableFormOf } from '../../../src/config/environment.ts';
import { type ConfigSchema, configKeysOf, type KeySchema } from '../../../src/config/keys.ts';
import { ERASURE_PART, LOCAL_PART } from '../../../src/config/local.ts';
import { parsePart } from '../../../src/config/parse.ts';
import { SOURCE_PART } from '../../../src/config/source.ts';
import { refusalOf } from '../../support/failure.ts';
import { newFolder } from '../../support/new-folder.ts';

const folder = newFolder();

const refusal = (given: Record<string, string>) =>
  readVariables(CONFIG_KEYS, given)
    .problems.map(({ text }) => text)
    .join();

/** A text that is right for each type and key. */
const EXAMPLES: Readonly<Record<string, string>> = {
  base_url: 'https://example.com',
  start_date: '2026-01-01',
  end_date: '2026-01-31',
  timezone: 'Asia/Seoul',
  memory_limit: '2GB',
  lock_wait: '5m',
  retention: '48h',
  notify_url: 'https://hooks.example/x',
  target: 'delta',
  column_types: '{"a":"long"}',
  columns_hash: 'c,d',
  places: '[{"target":"duckdb","place":"events.duckdb"}]',
};
const OF_TYPE: Readonly<Record<string, string>> = { integer: '7', array: 'a,b', object: '{}', boolean: 'false' };

describe('the environment as a configuration', () => {
  it.each<[string, ConfigSchema, (values: object) => { readonly problems: readonly unknown[] }]>([
    ['source', source, (values) => parsePart(SOURCE_PART, values)],
    ['command line', local, (values) => parsePart(LOCAL_PART, values)],
    ['erasure', erasure, (values) => parsePart(ERASURE_PART, values)],
  ])('has a variable for every key of the %s, and suffices without a file', (_name, schema, parse) => {
    const given = configKeysOf(schema).map(({ key, variableName, schema: keySchema }) => {
      const example = EXAMPLES[key] ?? keySchema.enum?.at(-1) ?? OF_TYPE[keySchema.type ?? ''];
      return [variableName, String(example ?? 'a-text-that-is-longer-than-32-characters')];
    });
    const { values } = readVariables(configKeysOf(schema), Object.fromEntries(given));
    expect(Object.keys(values)).toEqual(Object.keys(schema.properties));
    expect(parse(values).problems).toEqual([]);
  });

  it('parses lists with commas or as JSON, objects as JSON, and numbers; an empty variable is not set', () => {
    const given = {
      DFINERY_EVENTS: 'one, two,세 번째',
      DFINERY_PROPERTIES: '["with, comma", "b"]',
      DFINERY_COLUMN_TYPES: '{\n"zip": "string"}\n',
      DFINERY_LOOKBACK_DAYS: '3',
      DFINERY_TIMEZONE: '',
    };
    expect(readVariables(configKeysOf(source), given).values).toEqual({
      events: ['one', 'two', '세 번째'],
      properties: ['with, comma', 'b'],
      column_types: { zip: 'string' },
      lookback_days: 3,
    });
  });

  it.each([
    ['DFINERY_LOOKBACK_DAYS', 't0ken', 'wanted a whole number'],
    ['DFINERY_COLUMN_TYPES', 't0ken', 'wanted a JSON object'],
    ['DFINERY_EVENTS', '["t0ken"', 'wanted names with commas, without quotes, or a JSON array'],
    ['DFINERY_PLACES', 't0ken', 'wanted a JSON array'],
    ['DFINERY_EXPORT_TOKEN_FILE', 't0ken', 'cannot be read (ENOENT)'],
    ['DFINERY_EVENTS', '"t0ken,two"', 'remove the quotes'],
    ['DFINERY_COLUMNS_DROP', "phone, 't0ken'", 'without quotes'],
    ['DFINERY_EXPORT_TOKEN', "'t0ken'", 'remove the quotes'],
    ['DFINERY_SERVICE_ID', 't0ken\n', 'remove the line end'],
    ['DFINERY_EXPORT_TOKEN', 't0ken\r', 'remove the line end'],
  ])('refuses %s=%j by its name, without its value', (name, value, sentence) => {
    expect(refusal({ [name]: value })).toContain(name);
    expect(refusal({ [name]: value })).toContain(sentence);
    expect(refusal({ [name]: value })).not.toContain('t0ken');
  });

  it.each([
    ['', '\n'],
    ['\uFEFF', '\r\n'],
  ])('reads a secret from the file in NAME_FILE, between %j and %j', (begin, end) => {
    const path = join(folder, 'token');
    writeFileSync(path, `${begin}a token${end}`);
    const { values, variableNameByKey } = readVariables(configKeysOf(source), { DFINERY_EXPORT_TOKEN_FILE: path });
    expect([values, variableNameByKey.get('export_token')]).toEqual([
      { export_token: 'a token' },
      'DFINERY_EXPORT_TOKEN_FILE',
    ]);
    const both = { DFINERY_EXPORT_TOKEN: 'a', DFINERY_EXPORT_TOKEN_FILE: path };
    expect(refusal(both)).toContain('are both set, wanted one of them');
    writeFileSync(path, `${begin}${end}`);
    expect(refusal({ DFINERY_EXPORT_TOKEN_FILE: path })).toBe('the file that DFINERY_EXPORT_TOKEN_FILE names is empty');
  });

  it.each([
    ['DFINERY_SERVICEID', 'DFINERY_SERVICE_ID'],
    ['DFINERY_TOKEN', 'DFINERY_EXPORT_TOKEN'],
    ['dfinery_base_url', 'DFINERY_BASE_URL'],
    ['DFINERY_BASE_URL_FILE', 'DFINERY_BASE_URL'],
    ['DFINERY_EXPORT_TOKEN_FILES', 'DFINERY_EXPORT_TOKEN_FILE'],
  ])('refuses the name %s with the nearest known name', (name, near) => {
    const message = refusalOf(() => refuseUnknownVariables({ [name]: '1' }, CONFIG_KEYS));
    expect(message).toContain(`${name} (did you mean ${near}?)`);
  });

  it('accepts every variable that an example or a page names', () => {
    const root = new URL('../../../', import.meta.url);
    const files = ['examples', 'docs', 'connectors'].flatMap((name) =>
      readdirSync(new URL(name, root), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && /\.(md|py|ya?ml|cron|service|sql)$/.test(entry.name))
        .map((entry) => join(entry.parentPath, entry.name)),
    );
    const names = files.flatMap((file) => readFileSync(file, 'utf8').match(/DFINERY_[A-Z_]*[A-Z]/g) ?? []);
    const env = Object.fromEntries(names.map((name) => [name, '1']));
    expect(() => refuseUnknownVariables(env, CONFIG_KEYS)).not.toThrow();
  });
});

function describeForm(schema: KeySchema, isRequired: boolean): string {
  const { enum: choices, airbyte_secret, default: defaultValue } = schema;
  const form = airbyte_secret ? 'a secret' : (choices?.join(' or ') ?? variableFormOf(schema).form);
  const isEmpty = ['[]', '{}', undefined].includes(JSON.stringify(defaultValue));
  return `${form}${isRequired ? '; required' : isEmpty ? '' : `; ${String(defaultValue)}`}`;
}

function table(schema: ConfigSchema): string {
  const rows = Object.entries(schema.properties).map(([key, keySchema]) => {
    return `| \`${key}\` | ${describeForm(keySchema, schema.required.includes(key))} | ${keySchema.description ?? ''} |`;
  });
  return ['| key | value; default | meaning |', '|---|---|---|', ...rows, ''].join('\n');
}

it('docs/configuration.md lists every key in its tables (written by vitest --update)', async () => {
  const path = fileURLToPath(new URL('../../../docs/configuration.md', import.meta.url));
  const tables = [source, local, erasure].map(table);
  const page = readFileSync(path, 'utf8').replace(/(^\|.*\n)+/gm, () => tables.shift() ?? '');
  expect(tables).toEqual([]);
  await expect(page).toMatchFileSnapshot(path);
});
