import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import schema from '../../../schemas/source-config.json' with { type: 'json' };
import { UserError } from '../../../src/base/errors.ts';
import { parseSourceConfig } from '../../../src/config/source.ts';
import { envOf } from '../../support/env.ts';

const NONE = () => undefined;
const MINIMAL = { base_url: 'http://127.0.0.1:8080', service_id: 'svc', export_token: 'canary-token-1' };

function refusal(value: unknown, env: (name: string) => string | undefined = NONE): string {
  try {
    parseSourceConfig(value, env);
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    expect((error as UserError).kind).toBe('config');
    expect((error as UserError).exitCode).toBe(2);
    return (error as UserError).message;
  }
  throw new Error('was accepted');
}

describe('the source configuration', () => {
  it('fills in every documented default', () => {
    const { config, unknown } = parseSourceConfig(MINIMAL, NONE);
    expect(unknown).toEqual([]);
    expect(config).toMatchObject({
      windowDays: 1,
      lookbackDays: 1,
      delivery: 'auto',
      settleHours: 3,
      discoverDays: 3,
      toDateInclusive: 'auto',
      historyDays: 30,
      onGap: 'fail',
      maxConcurrentExports: 5,
      exportsPerHour: 100,
      schemaMode: 'evolve',
      stallMs: 600_000,
      emptyBody: 'retry',
      lockWaitMs: 30_000,
      eventsCondition: 'all',
      propertiesCondition: 'all',
      spoolDir: tmpdir(),
    });
    expect(Object.isFrozen(config)).toBe(true);
  });

  it('accepts every documented spelling of times and addresses', () => {
    const given = { ...MINIMAL, base_url: 'https://host/api//', lock_wait: '5m', retention: '48h', stall_minutes: 0.5 };
    expect(parseSourceConfig(given, NONE).config).toMatchObject({
      baseUrl: 'https://host/api',
      lockWaitMs: 300_000,
      retentionMs: 172_800_000,
      stallMs: 30_000,
    });
  });

  it.each(['127.0.0.1.example.com', '127.example.com', 'localhost.example.com'])(
    'refuses plain http to a host that only resembles this machine: %s',
    (host) => {
      expect(refusal({ ...MINIMAL, base_url: `http://${host}` })).toContain(`base_url is http://${host}, wanted https`);
    },
  );

  it('names every problem at once, each with its key, the value and what is wanted', () => {
    const message = refusal({
      base_url: 'http://example.com',
      service_id: 3,
      start_date: '2026-02-30',
      window_days: 0,
    });
    expect(message).toContain('service_id is 3, wanted a string');
    expect(message).toContain('export_token is missing');
    expect(message).toContain('start_date is "2026-02-30", wanted a day of the calendar as yyyy-MM-dd');
    expect(message).toContain('window_days is 0, wanted >= 1');
  });

  it('names problems that no schema can express, and unknown keys, each key once', () => {
    const message = refusal({
      ...MINIMAL,
      window_days: 0,
      end_date: 'tomorrow',
      to_date_inclusive: true,
      timezone: 'Mars/Base',
      column_types: { a: 'int' },
      windowdays: 3,
    });
    expect(message).toContain('window_days is 0, wanted >= 1');
    expect(message).toContain('timezone is "Mars/Base"');
    expect(message).toContain('column_types.a is "int", wanted one of boolean, long');
    expect(message).toContain('unknown key windowdays (did you mean window_days?)');
    expect(message.match(/end_date/g)).toHaveLength(1);
    expect(message.match(/to_date_inclusive/g)).toHaveLength(1);
  });

  it.each([
    ['http://example.com', 'plain http is accepted on loopback alone'],
    ['ftp://127.0.0.1', 'base_url is "ftp://127.0.0.1"'],
    ['https://user:pw@example.com', 'user name or password'],
    ['https://example.com/?x=1', 'base_url is'],
    ['nonsense', 'base_url is "nonsense"'],
    ['https://kim:canary@example.com/?x=1', 'base_url is "******@example.com/?x=1"'],
    ['https://kim:can@ary@example.com/#x', 'base_url is "******@example.com/#x"'],
    ['kim:canary@example.com?x', 'base_url is "******@example.com?x"'],
  ])('refuses the address %s', (base_url, why) => {
    expect(refusal({ ...MINIMAL, base_url })).toContain(why);
    expect(refusal({ ...MINIMAL, base_url })).not.toMatch(/kim|canary@/);
  });

  it.each([
    ['https://example.com/', 'https://example.com'],
    ['http://localhost:9/', 'http://localhost:9'],
    ['http://[::1]:9', 'http://[::1]:9'],
    ['https://example.com/proxy/', 'https://example.com/proxy'],
  ])('normalises the address %s to %s', (base_url, clean) => {
    expect(parseSourceConfig({ ...MINIMAL, base_url }, NONE).config.baseUrl).toBe(clean);
  });

  it('reads null as absent', () => {
    const { config } = parseSourceConfig({ ...MINIMAL, timezone: null, window_days: null }, NONE);
    expect(config.timezone).toBeUndefined();
    expect(config.windowDays).toBe(1);
  });

  it('lists unknown keys with the nearest known key, and ignores keys with an underscore', () => {
    const { unknown } = parseSourceConfig({ ...MINIMAL, windowdays: 3, zzz: 1, __injected: true }, NONE);
    expect(unknown).toEqual(['windowdays (did you mean window_days?)', 'zzz']);
  });

  it('finds no other key near one without a letter of the Latin alphabet', () => {
    const { unknown } = parseSourceConfig({ ...MINIMAL, 메모: 'x' }, NONE);
    expect(unknown).toEqual(['메모']);
  });

  it('refuses a start_date after the end_date', () => {
    const message = refusal({ ...MINIMAL, start_date: '2026-02-02', end_date: '2026-02-01' });
    expect(message).toContain('start_date 2026-02-02 is after end_date 2026-02-01');
  });

  it('prints no token, wherever it was written by mistake', () => {
    const token = MINIMAL.export_token;
    const message = refusal({ ...MINIMAL, base_url: `ftp://${token}@host`, [token]: 1, timezone: token });
    expect(message).toContain('timezone is');
    expect(message).toContain('unknown key');
    expect(message).not.toContain(token);
  });

  it.each(['suppression_key', 'hash_key'])('prints no %s, wherever it was written by mistake', (name) => {
    const key = 'a secret key of 32 characters, at least';
    const message = refusal({ ...MINIMAL, [name]: key, [key]: 1, timezone: key });
    expect(message).toContain('timezone is');
    expect(message).toContain('unknown key');
    expect(message).not.toContain(key.slice(0, 20));
  });

  it('refuses a secret that two variables give', () => {
    const { export_token: _, ...rest } = MINIMAL;
    const both = envOf({ DFINERY_EXPORT_TOKEN: 'a', DFINERY_EXPORT_TOKEN_FILE: '/b' });
    expect(refusal(rest, both)).toContain('DFINERY_EXPORT_TOKEN and DFINERY_EXPORT_TOKEN_FILE are both set');
  });

  it('refuses an offset as a timezone on every version of Node', () => {
    expect(refusal({ ...MINIMAL, timezone: '+09:00' })).toContain('timezone is "+09:00", wanted an IANA name');
  });

  it.each(['to\nken', 'to\u0000ken', '토큰', 'tok€n'])(
    'refuses an export_token that no header can carry: %j',
    (token) => {
      const message = refusal({ ...MINIMAL, export_token: token });
      expect(message).toContain('export_token holds a line end, or another character that no HTTP header can carry');
      expect(message).not.toContain(token);
    },
  );

  it('refuses an export_token with a blank at an end', () => {
    for (const token of [' token', 'token\t'])
      expect(refusal({ ...MINIMAL, export_token: token })).toContain('a blank');
  });

  it('reads the token from the environment or a file, and never prints it', () => {
    const { export_token: _dropped, ...rest } = MINIMAL;
    const direct = parseSourceConfig(rest, (name) => (name === 'DFINERY_EXPORT_TOKEN' ? 'canary-env' : undefined));
    expect(direct.config.exportToken.reveal()).toBe('canary-env');
    const both = parseSourceConfig(MINIMAL, (name) => (name === 'DFINERY_EXPORT_TOKEN' ? 'canary-env' : undefined));
    expect(both.config.exportToken.reveal()).toBe('canary-token-1');
    const dir = mkdtempSync(join(tmpdir(), 'config-'));
    try {
      const file = join(dir, 'token');
      writeFileSync(file, 'canary-file\n');
      const found = parseSourceConfig(rest, (name) => (name === 'DFINERY_EXPORT_TOKEN_FILE' ? file : undefined));
      expect(found.config.exportToken.reveal()).toBe('canary-file');
      expect(refusal(rest, (name) => (name === 'DFINERY_EXPORT_TOKEN_FILE' ? join(dir, 'no') : undefined))).toContain(
        'DFINERY_EXPORT_TOKEN_FILE',
      );
    } finally {
      rmSync(dir, { recursive: true });
    }
    expect(`${inspect(direct.config)}${JSON.stringify(direct.config)}${direct.config.exportToken}`).not.toContain(
      'canary',
    );
    expect(refusal({ ...MINIMAL, export_token: ['canary-list'] })).not.toContain('canary');
  });

  it.each([[null], [[]], ['text'], [3]])('refuses %j, which is not an object', (value) => {
    expect(refusal(value)).toContain('not a JSON object');
  });

  it('has a title, a description and a unique order for every key', () => {
    const properties = Object.entries(schema.properties);
    for (const [key, property] of properties) {
      expect(property.title.length * property.description.length, key).toBeGreaterThan(0);
    }
    expect(new Set(properties.map(([, property]) => property.order)).size).toBe(properties.length);
  });
});
