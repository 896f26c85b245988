import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { EXIT } from '../../../src/base/errors.ts';
import { newFolder } from '../../support/new-folder.ts';
import { CliChild, PROGRAM } from '../../support/processes/cli-child.ts';

const dir = newFolder();

it.each([
  { argv: ['--help'], code: EXIT.done },
  { argv: ['sync', '--help'], code: EXIT.done },
  { argv: ['sync', 'duckdb', 'events.duckdb', '--config', 'no-such-file'], code: EXIT.usage },
  { argv: ['check', '--config', 'no-such-file'], code: EXIT.usage },
  { argv: ['plan', '--config', 'no-such-file'], code: EXIT.usage },
])('$argv loads no native library: DuckDB is loaded where a place is opened', async ({ argv, code }) => {
  const hook = join(dir, 'no-library.cjs');
  writeFileSync(hook, "process.dlopen = () => { throw new Error('a native library is loaded'); };");
  const { stderr, ...ended } = await new CliChild(PROGRAM, argv, { NODE_OPTIONS: `--require ${hook}` }).ended;
  expect(stderr).not.toContain('native library');
  expect(ended).toMatchObject({ code });
});
