import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { STATEFUL_TARGETS } from '../../../src/targets/targets.ts';
import { daysBack } from '../../support/processes/cli-child.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { SERVICE_ID, startTestSimulator, TOKENS } from '../../support/service/simulator.ts';

const folder = mkdtempSync(join(tmpdir(), 'dfinery-place-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const env = {
  DFINERY_BASE_URL: 'http://127.0.0.1:1',
  DFINERY_SERVICE_ID: 's',
  DFINERY_EXPORT_TOKEN: 't',
  DFINERY_SPOOL_DIR: join(folder, 'spool'),
};
const none = join(folder, 'none');
const page = join(folder, 'page.html');

describe('a place of another target', () => {
  const places = new Map(STATEFUL_TARGETS.map(({ name }) => [name, join(folder, `loaded-${name}`)]));
  beforeAll(async () => {
    const sim = await startTestSimulator({}, { clock: systemClock, rowsPerDay: 3 });
    const service = { DFINERY_BASE_URL: sim.url, DFINERY_SERVICE_ID: SERVICE_ID, DFINERY_EXPORT_TOKEN: TOKENS.export };
    const day = daysBack(3);
    for (const [name, place] of places) {
      const argv = ['sync', name, place, '--from', day, '--to', day];
      expect(await runHere(argv, { env: { ...env, ...service } })).toMatchObject({ code: 0 });
    }
    await sim.close();
  });

  it.each(STATEFUL_TARGETS.map(({ name }) => name))('%s: each command names that target', async (name) => {
    const place = places.get(name) ?? '';
    const other = name === 'duckdb' ? 'delta' : 'duckdb';
    for (const [command, ...more] of [
      ['status'],
      ['sync'],
      ['plan'],
      ['verify'],
      ['report', '-o', page],
      ['compact'],
    ]) {
      if (command === 'compact' && other !== 'duckdb') continue;
      const { code, stderr } = await runHere([command, other, place, ...more], { env });
      expect([code, stderr]).toEqual([
        2,
        expect.stringContaining(`${place} is a place of ${name}: write ${command} ${name} ${place}.`),
      ]);
    }
    const forget = ['forget', '--id', 'x', '--in', other, place, '--by-column', 'x', '--purge-only'];
    expect((await runHere(forget, { env })).stderr).toContain(`write --in ${name} ${place}.`);
  });
});

describe('a location that does not exist or is of another kind', () => {
  it.each(STATEFUL_TARGETS.map(({ name }) => name))('%s: is named, and nothing is created there', async (target) => {
    for (const argv of [
      ['verify', target, none],
      ['status', target, none],
      ['report', target, none, '-o', page],
    ]) {
      expect(await runHere(argv, { env })).toMatchObject({ code: 2, stderr: expect.stringContaining(none) });
      expect([existsSync(none), existsSync(page)], argv.join(' ')).toEqual([false, false]);
    }
  });

  it.each(['parquet', 'delta'])('sync %s: a file is named by its whole path and stays unchanged', async (target) => {
    const file = join(folder, 'notes.txt');
    writeFileSync(file, 'notes');
    const given = relative(process.cwd(), file);
    const { code, stderr } = await runHere(['sync', target, given], { env });
    expect(code).toBe(2);
    expect(stderr).toContain(` ${file} cannot be used (ENOTDIR): a part of its path is no folder, give another`);
    expect(readFileSync(file, 'utf8')).toBe('notes');
  });
});

it('demo replaces no page that it did not write', async () => {
  const path = join(folder, 'mine.html');
  writeFileSync(path, 'mine');
  const { code, stderr } = await runHere(['demo', join(folder, 'mine.duckdb')]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('mine.html is there already')]);
  expect([readFileSync(path, 'utf8'), existsSync(join(folder, 'mine.duckdb'))]).toEqual(['mine', false]);
});
