import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import schema from '../../../schemas/source-config.json' with { type: 'json' };
import { parseSourceConfig } from '../../../src/config/source.ts';
import { refusalOf } from '../../support/failure.ts';
import { HASH_KEY } from '../../support/privacy.ts';

const NONE = {};
const MINIMAL = { base_url: 'http://127.0.0.1:8080', service_id: 'svc', export_token: 'canary-token-1' };
const parse = (more: object = {}) => parseSourceConfig({ ...MINIMAL, ...more }, NONE);
const refusal = (more: object) => refusalOf(() => parse(more));

describe('the source configuration', () => {
  it('fills in every documented default', () => {
    const { config, unknownKeyTexts } = parse();
    expect(unknownKeyTexts).toEqual([]);
    expect(config).toMatchObject({
      lookbackDays: 3,
      settleHours: 3,
      toDateInclusive: 'auto',
      historyDays: 30,
      onGap: 'fail',
      maxConcurrentExports: 5,
      eventsCondition: 'all',
      propertiesCondition: 'all',
    });
    expect(Object.isFrozen(config)).toBe(true);
  });

  it('reads null and an empty text as absent', () => {
    const { config } = parse({ timezone: null, lookback_days: null, start_date: '', suppression_file: '' });
    expect(config).toMatchObject({ timezone: undefined, lookbackDays: 3, startDate: undefined });
  });

  it('takes a choice of true or false as JSON writes it', () => {
    expect(parse({ to_date_inclusive: true }).config.toDateInclusive).toBe('true');
    expect(parse({ to_date_inclusive: false }).config.toDateInclusive).toBe('false');
  });

  it('includes the events and properties of a list that has no condition', () => {
    const { config } = parse({ events: ['df_purchase'], properties: ['plan'], properties_condition_type: 'exclude' });
    expect(config).toMatchObject({ eventsCondition: 'include', propertiesCondition: 'exclude' });
    expect(refusal({ events: ['df_purchase'], events_condition_type: 'all' })).toContain(
      'events_condition_type is all, under which the list events would change nothing: wanted include or exclude',
    );
  });

  it('takes a name of a column in every Unicode form', () => {
    const decomposed = '전화'.normalize('NFD');
    expect(parse({ columns_drop: [decomposed], column_types: { [decomposed]: 'long' } }).config).toMatchObject({
      columnsDrop: ['전화'],
      columnTypes: new Map([['전화', 'long']]),
    });
    const shortestKey = 'k'.repeat(32);
    expect(parse({ columns_hash: [decomposed], hash_key: shortestKey }).config.columnsHash).toEqual(['전화']);
    expect(refusal({ columns_drop: [decomposed], columns_hash: ['전화'] })).toContain('both have 전화');
  });

  it.each<[object, string]>([
    [{ service_id: 3 }, 'service_id is not usable, wanted a string'],
    [{ export_token: undefined }, 'export_token is missing'],
    [{ start_date: '2026-02-30' }, 'start_date is not usable, wanted a day of the calendar as yyyy-MM-dd'],
    [{ start_date: '2026-02-02', end_date: '2026-02-01' }, 'start_date 2026-02-02 is after end_date 2026-02-01'],
    [{ lookback_days: 31 }, 'lookback_days is not usable, wanted at most 30'],
    [{ on_gap: 't0ken' }, 'on_gap is not usable, wanted one of fail, warn'],
    [{ to_date_inclusive: 't0ken' }, 'to_date_inclusive is not usable, wanted one of auto, true, false'],
    [{ timezone: '+09:00' }, 'timezone is no IANA name such as Asia/Seoul'],
    [{ column_types: { a: 't0ken' } }, 'column_types gives a no type, wanted one of boolean, long'],
    [{ suppression_file: 't0ken' }, 'suppression_key is missing beside suppression_file'],
    [{ base_url: 'http://t0ken.example.com' }, 'base_url is not usable, wanted https://host without'],
    [{ base_url: 'http://127.0.0.1.example.com' }, 'base_url is not usable, wanted https://host without'],
    [{ base_url: 't0ken' }, 'base_url is not usable, wanted https://host'],
    [
      { base_url: 'https://t0ken:t0ken@example.com' },
      'base_url is not usable, wanted https://host without a user name',
    ],
    [{ base_url: 'https://example.com/?x=t0ken' }, 'base_url is not usable, wanted a text like https://host'],
    [
      { base_url: 'https://example.com/t0ken/api/v1/' },
      'base_url is not usable, wanted a text like https://host, without the /api/v1',
    ],
    [
      { export_token: 'Bearer t0ken' },
      'export_token is not usable, wanted a text like abc123, the token alone, without Bearer',
    ],
    [{ export_token: 't0ken\t' }, 'export_token is not usable'],
    [{ export_token: 'tok€n' }, 'export_token is not usable'],
    [{ columns_drop: ['df_unified_id'] }, 'columns_drop has df_unified_id: every export has that'],
    [{ columns_hash: ['df_server_datetime'], hash_key: HASH_KEY }, 'cannot be hashed'],
    [{ columns_drop: ['a'], columns_hash: ['a'], hash_key: HASH_KEY }, 'both have a, wanted one'],
    [{ columns_hash: ['a'] }, 'hash_key is missing'],
    [{ columns_hash: ['a'], hash_key: 't0ken' }, 'shorter than 32 characters'],
    [{ columns_hash: ['a'], hash_key: HASH_KEY, column_types: { a: 'long' } }, 'column_types gives a another type'],
    [
      { columns_hash: ['event_name'], hash_key: HASH_KEY, column_types: { df_event_name: 'long' } },
      'column_types gives df_event_name another type',
    ],
  ])('refuses %j by its key, without its value', (more, sentence) => {
    expect(refusal(more)).toContain(sentence);
    expect(refusal(more)).not.toMatch(/t0ken|canary/);
  });

  it('names every problem at once', () => {
    expect(refusal({ service_id: 3, lookback_days: 31 })).toMatch(/service_id .*lookback_days /);
    const dates = { start_date: '2026-02-02', end_date: '2026-02-01' };
    expect(refusal({ ...dates, timezone: 'Mars/Base' })).toMatch(/timezone .*start_date /);
  });

  it.each([
    ['https://example.com/', 'https://example.com'],
    ['http://localhost:9/', 'http://localhost:9'],
    ['http://[::1]:9', 'http://[::1]:9'],
    ['https://example.com/proxy//', 'https://example.com/proxy'],
  ])('normalises the address %s to %s', (base_url, clean) => {
    expect(parse({ base_url }).config.baseUrl).toBe(clean);
  });

  it('lists unknown keys with the nearest known key, and ignores keys with an underscore', () => {
    const { unknownKeyTexts } = parse({ lookbackdays: 3, window_days: 1, 메모: 1, __injected: true });
    expect(unknownKeyTexts).toEqual(['lookbackdays (did you mean lookback_days?)', 'window_days', '메모']);
  });

  it('takes a secret that the configuration lacks from the environment, and never prints it', () => {
    const lacking = { ...MINIMAL, export_token: '' };
    const { config } = parseSourceConfig(lacking, { DFINERY_EXPORT_TOKEN: 'canary-env' });
    expect(config.exportToken.reveal()).toBe('canary-env');
    expect(`${inspect(config)}${JSON.stringify(config)}${config.exportToken}`).not.toContain('canary');
    const unreadable = () => parseSourceConfig(lacking, { DFINERY_EXPORT_TOKEN_FILE: '/none' });
    expect(refusalOf(unreadable)).toContain('DFINERY_EXPORT_TOKEN_FILE');
  });

  it('takes a hash_key without a list, and never prints it', () => {
    const { config } = parse({ hash_key: 'canary-short' });
    expect(config.columnsHash).toEqual([]);
    expect(String(config.hashKey)).toBe('******');
  });

  it.each([[null], [[]], ['text'], [3]])('refuses %j, which is not an object', (value) => {
    expect(refusalOf(() => parseSourceConfig(value, NONE))).toContain('not a JSON object');
  });

  it('has a title, a description and a unique order for every key', () => {
    const properties = Object.values(schema.properties);
    for (const { title, description } of properties) expect(title.length * description.length).toBeGreaterThan(0);
    expect(new Set(properties.map(({ order }) => order)).size).toBe(properties.length);
  });
});
