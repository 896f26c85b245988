import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/base/log.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { HashKey } from '../../../src/cells/columns/hash-key.ts';
import { parseSourceConfig, type SourceConfig } from '../../../src/config/source.ts';
import { editsOf, extractDeps, openExportSession } from '../../../src/extract/session.ts';
import { ManualClock } from '../../support/service/service.ts';

const KEY = 'a key that has at least 32 characters';
let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'dfinery-session-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const { signal } = new AbortController();
const runtime = () => ({
  clock: new ManualClock(),
  random: () => 0,
  logger: silentLogger,
  env: () => undefined,
  signal,
});
const configOf = (more: object = {}): SourceConfig =>
  parseSourceConfig(
    { base_url: 'http://127.0.0.1:1', service_id: 's', export_token: 't', spool_dir: root, ...more },
    () => undefined,
  ).config;
const depsOf = (more: object = {}) => {
  const session = openExportSession(configOf(more), runtime());
  return extractDeps(configOf(more), session.service, runtime());
};
describe('the options of an extraction', () => {
  it('are its limits and its spool folder, and nothing that is not configured', () => {
    const plain = depsOf({ max_concurrent_exports: 2, empty_body: 'no_rows', timezone: 'Asia/Seoul' });
    expect(plain.options).toEqual({ maxConcurrentExports: 2, emptyBody: 'no_rows', timezone: 'Asia/Seoul' });
    expect(plain).toMatchObject({ spoolDir: root, signal, counts: { exports: 0, bytes: 0 } });
    expect(plain.service.sent).toBe(0);
  });

  it('include dropped and hashed columns, with the key for ids when ids are hashed', () => {
    const hashed = { columns_hash: ['df_unified_id', 'email'], columns_drop: ['phone'], hash_key: KEY };
    const { edits } = depsOf(hashed).options;
    expect([[...(edits?.drop ?? [])], [...(edits?.hash ?? [])]]).toEqual([['phone'], ['df_unified_id', 'email']]);
    expect(edits?.key?.check).toBe(new HashKey(new Secret(KEY)).check);
    expect(editsOf(configOf())).toBeUndefined();
    expect(editsOf(configOf({ columns_drop: ['phone'] }))?.key).toBeUndefined();
  });
});
