import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import destination from '../../../schemas/destination-config.json' with { type: 'json' };
import source from '../../../schemas/source-config.json' with { type: 'json' };
import { UserError } from '../../../src/base/errors.ts';
import { parseDestinationConfig } from '../../../src/config/destination.ts';
import {
  type ConfigSchema,
  FORMS,
  type Property,
  readEnvironment,
  refuseUnknownNames,
  variableOf,
  variablesOf,
} from '../../../src/config/environment.ts';
import { parseSourceConfig } from '../../../src/config/source.ts';
import { envOf } from '../../support/env.ts';

function formOf(property: Property & Bounds): string {
  const { type = 'string', enum: choices, airbyte_secret } = property;
  if (airbyte_secret) return 'a secret';
  return choices?.map((choice) => `\`${String(choice)}\``).join(', ') ?? `${FORMS[type]}${boundsOf(property)}`;
}

/** Bounds that the schema has beside what the program reads of a property. */
type Bounds = Partial<Record<'minimum' | 'exclusiveMinimum' | 'maximum', number>>;

function boundsOf({ minimum, exclusiveMinimum, maximum }: Bounds): string {
  if (exclusiveMinimum !== undefined) return `, more than ${exclusiveMinimum}, at most ${maximum}`;
  if (minimum === undefined) return '';
  return maximum === undefined ? `, ${minimum} or more` : `, ${minimum} to ${maximum}`;
}

function table(schema: ConfigSchema): string[] {
  const rows = variablesOf(schema).map(({ key, name, property }) => {
    const standard = property.default === undefined ? '' : `\`${JSON.stringify(property.default)}\``;
    const cells = [
      `\`${key}\``,
      `\`${name}\`${property.airbyte_secret ? ', also `…_FILE`' : ''}`,
      formOf(property),
      schema.required.includes(key) ? 'required' : standard,
      property.description ?? '',
    ];
    return `| ${cells.join(' | ')} |`;
  });
  return ['| key | variable | value | default | meaning |', '|---|---|---|---|---|', ...rows];
}

const secretVariables = (schema: ConfigSchema): string[] =>
  variablesOf(schema).flatMap(({ name, property }) => (property.airbyte_secret ? [`\`${name}\``] : []));

/** docs/configuration.md as it has to be: its tables come from the schemas. */
const configurationPage = (): string =>
  [
    '# Configuration',
    '',
    'The command line takes its configuration from a JSON file (`--config`, default `dfinery.json`, for `forget`',
    '`dfinery-destination.json`), from environment variables, or from both: a variable wins over the file, and without a',
    'file the variables are enough. `dfinery-elt init` writes the file.',
    '',
    '- Each key is the variable `DFINERY_` + the key in capitals. An empty variable counts as not set.',
    '- Lists: names with commas between them (`one,two`), or a JSON array where a name has a comma. Objects: JSON.',
    '- Numbers and `true`/`false` are taken literally; anything else is refused with exit 2, and the sentence names the variable.',
    '- `DFINERY_NOTIFY_URL` is no key: it is the address of `--notify` ([runs.md](runs.md#notifications)).',
    '- A secret may also stand in a file that the variable + `_FILE` names; both at once are refused.',
    '- A name that begins with `DFINERY_` and means nothing is refused with the nearest one that does. What Kubernetes sets for a',
    '  service called `dfinery…`, and what the examples read (`DFINERY_CLI`, `DFINERY_CONFIG`, `DFINERY_TARGET`,',
    '  `DFINERY_IMAGE`, `DFINERY_DATA`, `DFINERY_DOCKER_URL`, `DFINERY_DOCKER_NETWORK`, `DFINERY_DUCKDB`), is left alone.',
    '- `dfinery-elt plan --json` says for each key its value and whether it came from the file, the environment or the default;',
    '  secrets are masked. `dfinery-elt sync --help` and `dfinery-elt forget --help` list the variables.',
    '',
    'The Airbyte images get their configuration from the platform. From the environment they take only the secrets that it',
    `lacks: ${secretVariables(source).join(', ')},`,
    `${secretVariables(destination).join(', ')}, each also as \`_FILE\`.`,
    '',
    '## Source: `sync`, `plan`, `check`, `discover`',
    '',
    ...table(source),
    '',
    '## Destination: `forget`',
    '',
    '`forget` ignores `dry_run` and `streams`, which are for the Airbyte destination: it deletes with',
    '`--execute --confirm HASH` alone. `forget` and `person` also read `DFINERY_HASH_KEY`, where a column is',
    'hashed; `forget --suppression-file` reads `DFINERY_SUPPRESSION_KEY`.',
    '',
    ...table(destination),
    '',
    'This page is made from `schemas/source-config.json` and `schemas/destination-config.json` by',
    '`npx vitest run test/unit/config/environment.test.ts --update`.',
    '',
  ].join('\n');

const folder = mkdtempSync(join(tmpdir(), 'dfinery-env-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const MINIMAL = {
  DFINERY_BASE_URL: 'http://127.0.0.1:1',
  DFINERY_SERVICE_ID: 'svc',
  DFINERY_EXPORT_TOKEN: 'canary-token-1',
};

function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    expect((error as UserError).exitCode).toBe(2);
    return (error as UserError).message;
  }
  throw new Error('was accepted');
}

const wrong = (given: Record<string, string>) => refusal(() => readEnvironment(source, envOf(given)));

/** A text that is right for each type and key. */
const EXAMPLES: Readonly<Record<string, string>> = {
  base_url: 'https://example.com',
  start_date: '2026-01-01',
  end_date: '2026-01-31',
  timezone: 'Asia/Seoul',
  memory_limit: '2GB',
  lock_wait: '5m',
  retention: '48h',
  column_types: '{"a":"long"}',
  columns_hash: 'c,d',
};
const OF_TYPE: Readonly<Record<string, string>> = {
  integer: '7',
  number: '7.5',
  array: 'a,b',
  object: '{}',
  boolean: 'false',
};

describe('the environment as a configuration', () => {
  it.each([
    ['source', source, parseSourceConfig],
    ['destination', destination, parseDestinationConfig],
  ] as const)('has a variable for every key of the %s, and suffices without a file', (_name, schema, parse) => {
    const given = variablesOf(schema).map(({ name, key, property }) => {
      const choice = property.enum?.at(-1);
      const text =
        EXAMPLES[key] ?? choice ?? OF_TYPE[property.type ?? ''] ?? 'a text that is longer than 32 characters';
      return [name, String(text)];
    });
    const { values, names } = readEnvironment(schema, envOf(Object.fromEntries(given)));
    expect(Object.keys(values)).toEqual(Object.keys(schema.properties));
    expect([...names]).toEqual(Object.keys(schema.properties).map((key) => [key, variableOf(key)]));
    expect(parse(values, () => undefined).unknown).toEqual([]);
  });

  it('parses lists with commas or as JSON, objects as JSON, and numbers', () => {
    const given = {
      ...MINIMAL,
      DFINERY_EVENTS: 'one, two,세 번째',
      DFINERY_PROPERTIES: '["with, comma", "b"]',
      DFINERY_COLUMN_TYPES: '{"zip": "string"}',
      DFINERY_STALL_MINUTES: '0.5',
      DFINERY_WINDOW_DAYS: '3',
      DFINERY_TIMEZONE: '',
    };
    const { config } = parseSourceConfig(readEnvironment(source, envOf(given)).values, () => undefined);
    expect(config).toMatchObject({
      events: ['one', 'two', '세 번째'],
      properties: ['with, comma', 'b'],
      columnTypes: new Map([['zip', 'string']]),
      stallMs: 30_000,
      windowDays: 3,
      timezone: undefined,
    });
  });

  it.each([
    ['DFINERY_WINDOW_DAYS', '1x', 'DFINERY_WINDOW_DAYS is "1x", wanted a whole number'],
    ['DFINERY_WINDOW_DAYS', '1.5', 'wanted a whole number'],
    ['DFINERY_WINDOW_DAYS', ' 1', 'wanted a whole number'],
    ['DFINERY_WINDOW_DAYS', '0x10', 'wanted a whole number'],
    ['DFINERY_STALL_MINUTES', '1e3', 'wanted a number'],
    ['DFINERY_STALL_MINUTES', 'Infinity', 'wanted a number'],
    ['DFINERY_COLUMN_TYPES', '[]', 'wanted a JSON object'],
    ['DFINERY_COLUMN_TYPES', 'null', 'wanted a JSON object'],
    ['DFINERY_COLUMN_TYPES', '{"a":', 'wanted a JSON object'],
    ['DFINERY_EVENTS', '["a"', 'wanted names with commas or JSON array'],
  ])('refuses %s=%j, by name', (name, value, sentence) => {
    expect(wrong({ ...MINIMAL, [name]: value })).toContain(sentence);
  });

  it.each(['True', 'yes', '1', ' true'])('refuses %j as a boolean', (text) => {
    const message = refusal(() => readEnvironment(destination, envOf({ DFINERY_DRY_RUN: text })));
    expect(message).toContain('wanted true or false');
  });

  it('names all problems at once, with the variable of each', () => {
    const message = wrong({ ...MINIMAL, DFINERY_WINDOW_DAYS: 'a', DFINERY_SETTLE_HOURS: 'b' });
    expect(message).toMatch(/DFINERY_WINDOW_DAYS.*DFINERY_SETTLE_HOURS/);
    const { values, names } = readEnvironment(source, envOf({ ...MINIMAL, DFINERY_WINDOW_DAYS: '99' }));
    expect(refusal(() => parseSourceConfig(values, () => undefined, names))).toContain(
      'window_days is 99, wanted <= 30 (from DFINERY_WINDOW_DAYS)',
    );
  });

  it('reads secrets, and no other key, from the file in NAME_FILE', () => {
    const path = join(folder, 'token');
    writeFileSync(path, 'canary-token-2\n');
    const { values, names } = readEnvironment(source, envOf({ DFINERY_EXPORT_TOKEN_FILE: path }));
    expect(values).toEqual({ export_token: 'canary-token-2' });
    expect(names.get('export_token')).toBe('DFINERY_EXPORT_TOKEN_FILE');
    expect(wrong({ DFINERY_EXPORT_TOKEN_FILE: '/none' })).toContain('DFINERY_EXPORT_TOKEN_FILE names cannot be read');
    expect(wrong({ ...MINIMAL, DFINERY_EXPORT_TOKEN_FILE: path })).toContain('are both set, wanted one of them');
    expect(refusal(() => refuseUnknownNames(envOf({ DFINERY_BASE_URL_FILE: path })))).toContain(
      'did you mean DFINERY_BASE_URL?',
    );
  });

  it.each(['\n', '\r\n', ''])('reads the same key from a file with any line end: %j', (end) => {
    const key = 'a key of thirty-two characters !';
    const path = join(folder, 'key');
    writeFileSync(path, `${key}${end}`);
    const given = { base_url: 'https://host', service_id: 'svc', export_token: 'token', columns_hash: ['df_keyword'] };
    const { config } = parseSourceConfig(given, envOf({ DFINERY_HASH_KEY_FILE: path }));
    expect(config.hashKey?.reveal()).toBe(key);
  });

  it('never prints a secret that was written into another variable', () => {
    const message = wrong({ ...MINIMAL, DFINERY_WINDOW_DAYS: 'canary-token-1' });
    expect(message).toContain('DFINERY_WINDOW_DAYS');
    expect(message).not.toContain('canary-token-1');
  });

  it.each([
    ['DFINERY_SERVICEID', 'DFINERY_SERVICE_ID'],
    ['DFINERY_WINDOWS_DAY', 'DFINERY_WINDOW_DAYS'],
    ['DFINERY_TOKEN', 'DFINERY_EXPORT_TOKEN'],
    ['dfinery_base_url', 'DFINERY_BASE_URL'],
    ['DFINERY_EXPORT_TOKEN_FILES', 'DFINERY_EXPORT_TOKEN_FILE'],
    ['DFINERY_', 'DFINERY_'],
  ])('refuses the name %s with the nearest known name', (name, near) => {
    const message = refusal(() => refuseUnknownNames(envOf({ ...MINIMAL, [name]: '1' })));
    expect(message).toContain(`${name} (did you mean ${near}`);
  });

  it('accepts every variable that an example or a page names', () => {
    const root = new URL('../../../', import.meta.url);
    const files = ['examples', 'docs', 'connectors'].flatMap((folder) =>
      readdirSync(new URL(folder, root), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && /\.(md|py|ya?ml|cron|service|sql)$/.test(entry.name))
        .map((entry) => join(entry.parentPath, entry.name)),
    );
    const names = files.flatMap((file) => readFileSync(file, 'utf8').match(/DFINERY_[A-Z_]*[A-Z]/g) ?? []);
    expect(names).toContain('DFINERY_DOCKER_URL');
    expect(() => refuseUnknownNames(envOf(Object.fromEntries(names.map((name) => [name, '1']))))).not.toThrow();
  });

  it('ignores variables of Kubernetes, and accepts those of other commands', () => {
    const ours = ['LEDGER_KEY_FILE', 'HASH_KEY', 'NOTIFY_URL', 'MAX_DELETIONS_PER_SYNC', 'WINDOW_DAYS'].map(
      (name) => `DFINERY_${name}`,
    );
    const links = ['SERVICE_HOST', 'SERVICE_PORT', 'SERVICE_PORT_HTTP', 'PORT', 'PORT_80_TCP', 'PORT_80_TCP_ADDR'];
    const all = [...ours, ...links.map((name) => `DFINERY_ELT_${name}`), 'OTHER_NAME'];
    expect(() => refuseUnknownNames(envOf(Object.fromEntries(all.map((name) => [name, '1']))))).not.toThrow();
  });
});

describe('docs/configuration.md', () => {
  it('lists every key with its variable (written by vitest --update)', async () => {
    await expect(configurationPage()).toMatchFileSnapshot('../../../docs/configuration.md');
  });
});
