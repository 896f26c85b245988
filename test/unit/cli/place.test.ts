import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { STATEFUL_TARGETS } from '../../../src/targets/targets.ts';
import { CliFixture, daysBack } from '../../support/processes/cli-child.ts';

let fixture: CliFixture;
beforeAll(async () => {
  fixture = await CliFixture.start();
});
afterAll(() => fixture.close());
const at = (name: string) => join(fixture.dir, name);
const run = (argv: readonly string[]) => fixture.run(argv, fixture.variables);

describe('a place of another target', () => {
  beforeAll(async () => {
    for (const { name } of STATEFUL_TARGETS) {
      const argv = ['sync', name, at(name), '--from', daysBack(3), '--to', daysBack(3)];
      expect(await run(argv)).toMatchObject({ code: 0 });
    }
  });

  it.each(STATEFUL_TARGETS.map(({ name }) => name))('%s: each command names that target', async (name) => {
    const place = at(name);
    const other = name === 'duckdb' ? 'delta' : 'duckdb';
    for (const [command, ...more] of [['status'], ['sync'], ['plan'], ['verify'], ['report', '-o', at('page.html')]]) {
      const { code, stderr } = await run([command, other, place, ...more]);
      expect([code, stderr]).toEqual([
        2,
        expect.stringContaining(`${place} is a place of ${name}: write ${command} ${name} ${place}.`),
      ]);
    }
    const forget = ['forget', '--id', 'x', '--in', other, place, '--by-column', 'x', '--purge-only'];
    expect((await run(forget)).stderr).toContain(`write --in ${name} ${place}.`);
  });

  it('is told that a command does not take its target', async () => {
    const { code, stderr } = await run(['compact', 'duckdb', at('parquet')]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('is a place of parquet: write compact duckdb FILE.')]);
  });

  it('is told of a Delta table, too, whose first load has stored profiles alone', async () => {
    mkdirSync(at('profiles/user_profiles/_delta_log'), { recursive: true });
    const { code, stderr } = await run(['sync', 'parquet', at('profiles')]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('profiles is a place of delta: write sync delta ')]);
  });
});

describe('a location that does not exist or is of another kind', () => {
  it.each(STATEFUL_TARGETS.map(({ name }) => name))('%s: is named, and nothing is created there', async (target) => {
    const [none, page] = [at('none'), at('page.html')];
    for (const argv of [
      ['verify', target, none],
      ['status', target, none],
      ['report', target, none, '-o', page],
    ]) {
      expect(await run(argv)).toMatchObject({ code: 2, stderr: expect.stringContaining(none) });
      expect([existsSync(none), existsSync(page)], argv.join(' ')).toEqual([false, false]);
    }
  });

  it.each(['parquet', 'delta'])('%s: a file is named by its whole path and stays unchanged', async (target) => {
    const file = at('notes.txt');
    writeFileSync(file, 'notes');
    const given = relative(process.cwd(), file);
    for (const command of ['sync', 'status']) {
      const { code, stderr } = await run([command, target, given]);
      expect(code).toBe(2);
      expect(stderr).toContain(` ${file} cannot be used (ENOTDIR): a part of its path is no folder, give another.\n`);
    }
    expect(readFileSync(file, 'utf8')).toBe('notes');
  });
});

it('a place whose ~ no shell has replaced is refused, in words, in a configuration and in a variable', async () => {
  const config = at('config.json');
  writeFileSync(config, JSON.stringify({ target: 'parquet', place: '~/lake' }));
  for (const argv of [
    ['status', 'parquet', '~/lake'],
    ['status', '--config', config],
  ]) {
    const { code, stderr } = await fixture.run(argv);
    expect([code, stderr]).toEqual([2, expect.stringContaining('~/lake begins with ~')]);
  }
  const { code, stderr } = await fixture.run(['status', 'parquet', at('lake')], { DFINERY_LEDGER_DIR: '~/ledger' });
  expect([code, stderr]).toEqual([2, expect.stringContaining('~/ledger begins with ~')]);
});

it('demo replaces no page that it did not write', async () => {
  const path = at('mine.html');
  writeFileSync(path, 'mine');
  const { code, stderr } = await fixture.run(['demo', at('mine.duckdb')]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('mine.html is there already')]);
  expect([readFileSync(path, 'utf8'), existsSync(at('mine.duckdb'))]).toEqual(['mine', false]);
});
