import {
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TABLES } from '../../../src/table/columns.ts';
import type { Sink } from '../../../src/targets/sink.ts';
import { type DeletionServer, startDeletionServer } from '../../support/deletion/deletions.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';
import { openDeltaSink, openParquetSink } from '../../support/targets/files.ts';

let server: DeletionServer;
let fixture: DuckDbFixture;
const at = (name: string) => join(fixture.dir, name);
beforeEach(async () => {
  fixture = new DuckDbFixture();
  server = await startDeletionServer();
  const config = { base_url: server.url, service_id: 's', import_token: 't', ledger_dir: at('ledger') };
  writeFileSync(at('config.json'), JSON.stringify(config));
  writeFileSync(at('mapping.csv'), 'external_id,df_unified_id\na,u-4711\n');
  mkdirSync(at('spool'));
});
afterEach(async () => {
  await server.close();
  fixture.close();
});

const forget = (...argv: string[]) => runHere(['forget', '--config', at('config.json'), ...argv]);

function openPlace(name: string): Promise<Sink> {
  const options = {
    ...fixture.targetOptions,
    tables: TABLES,
    lockWaitMs: 0,
    spoolDir: at('spool'),
    env: () => undefined,
  };
  if (name === 'parquet') return openParquetSink({ ...options, place: at('place') });
  return openDeltaSink({ ...options, place: at('place'), retentionMs: 0 });
}

const files = () =>
  readdirSync(at('place'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'lock')
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
const contents = () => files().map((file) => [file, readFileSync(file).toString('base64')]);

describe('forget, with hard links to the files of a target', () => {
  it.each(['parquet', 'delta'])(
    'deletes nobody while a file of %s has a second name, and every byte once it has none',
    async (name) => {
      const sink = await openPlace(name);
      const rows = [{ id: 'e1', df_unified_id: 'u-4711' }, { id: 'e2' }];
      await sink.commit([fixture.window('2026-01-01', csvOf(rows))], fixture.signal);
      await sink.close();
      const [data] = files().filter((file) => file.includes('events/') && file.endsWith('.parquet'));
      const words = ['--id', 'a', '--json', '--purge', name, at('place'), '--mapping', at('mapping.csv')];
      const { hash } = JSON.parse((await forget(...words, '--spool-dir', at('spool'))).stdout);
      const execute = () => forget(...words, '--spool-dir', at('spool'), '--execute', '--confirm', hash);
      const before = contents();
      linkSync(data, at('elsewhere'));
      expect(await execute()).toMatchObject({ code: 2, stderr: expect.stringMatching(/1 more name \(hard links\)/) });
      rmSync(data);
      symlinkSync(at('elsewhere'), data);
      expect(await execute()).toMatchObject({ code: 2, stderr: expect.stringMatching(/leads to one elsewhere/) });
      rmSync(data);
      renameSync(at('elsewhere'), data);
      expect(server.ids()).toEqual([]);
      expect(contents()).toEqual(before);
      expect((await execute()).code).toBe(0);
      expect(server.ids()).toEqual(['a']);
      expect(files().filter((file) => readFileSync(file).includes('u-4711'))).toEqual([]);
    },
  );
});
