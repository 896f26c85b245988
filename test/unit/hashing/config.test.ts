import { describe, expect, it } from 'vitest';
import { parseSourceConfig } from '../../../src/config/source.ts';
import { HASH_KEY } from '../../support/privacy.ts';

const BASE = { base_url: 'http://127.0.0.1:8080', service_id: 'svc', export_token: 'canary-token-1' };
const parsed = (more: object) => parseSourceConfig({ ...BASE, ...more }, () => undefined).config;

describe('columns_drop and columns_hash', () => {
  it.each([
    ['df_unified_id', { columns_drop: ['df_unified_id'] }, /columns_drop has df_unified_id: every export has that/],
    ['the event name by either name', { columns_drop: ['event_name'] }, /columns_drop has event_name/],
    ['the time that days come from', { columns_hash: ['df_server_datetime'], hash_key: HASH_KEY }, /cannot be hashed/],
    ['a column in both', { columns_drop: ['a'], columns_hash: ['a'], hash_key: HASH_KEY }, /both have a, wanted one/],
    ['no key', { columns_hash: ['a'] }, /hash_key \(DFINERY_HASH_KEY\) is missing/],
    ['an empty key', { columns_hash: ['a'], hash_key: '' }, /hash_key \(DFINERY_HASH_KEY\) is missing/],
    ['a short key', { columns_hash: ['a'], hash_key: 'x'.repeat(31) }, /shorter than 32 characters/],
    ['another type', { columns_hash: ['a'], hash_key: HASH_KEY, column_types: { a: 'long' } }, /column_types gives a/],
  ])('are refused with one message: %s', (_, more, sentence) => {
    expect(() => parsed(more)).toThrow(sentence);
    expect(() => parsed(more)).toThrow(expect.objectContaining({ exitCode: 2 }));
  });

  it('never print the key, and a key without a list is accepted', () => {
    expect(() => parsed({ columns_hash: ['a'], hash_key: 'canary-short-key' })).not.toThrow(/canary-short-key/);
    expect(parsed({ hash_key: 'short' }).columnsHash).toEqual([]);
    expect(String(parsed({ hash_key: HASH_KEY }).hashKey)).toBe('******');
  });
});
