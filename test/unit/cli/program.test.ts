import { afterEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { runCommandLine } from '../../../src/cli/program.ts';

afterEach(() => vi.unstubAllEnvs());

async function run(...argv: string[]) {
  const said: string[] = [];
  const say = (line: string) => void said.push(line);
  const code = await runCommandLine(argv, {
    terminal: { result: say, note: say, record: async (line) => say(line), interactive: false, columns: 80 },
    clock: systemClock,
    env: () => undefined,
    signal: new AbortController().signal,
  });
  return { code, text: said.join('\n') };
}

describe('the command line', () => {
  it.each(['ko_KR.UTF-8', 'de_DE.UTF-8', 'C', ''])('speaks one language, under the locale %j too', async (locale) => {
    for (const name of ['LC_ALL', 'LC_MESSAGES', 'LANG', 'LANGUAGE']) vi.stubEnv(name, locale);
    expect(await run('--help')).toEqual({ code: 0, text: expect.stringMatching(/^Commands:$/m) });
    expect(await run('sync', 'duckdb', 'x', '--colour')).toEqual({
      code: 2,
      text: expect.stringContaining('Unknown argument: colour'),
    });
  });

  it.each([
    [['forget', '--id', 'a', '--id', 'b'], '--id is given more than once.'],
    [['forget', '--id=a', '--id', 'b'], '--id is given more than once.'],
    [['report', 'duckdb', 'x', '-o', 'a', '-o', 'b'], '-o is given more than once.'],
    [['forget', '--verify-ledger', 'x', '--head', ''], '--head is empty.'],
    [['forget', '--proof', '', '--ledger-dir', 'x'], '--proof is empty.'],
    [['forget', '--id'], '--id is empty.'],
    [['forget', '--id', '--execute'], '--id is empty.'],
    [['forget', '--proof', '-x'], '--proof needs --ledger-dir DIR.'],
    [['forget', '--id', '-x', '--config', '/none'], '/none cannot be read'],
    [['forget', '--file', '-', '--config', '/none'], '/none cannot be read'],
  ])('leaves out nothing that was meant: %j', async (argv, sentence) => {
    expect(await run(...argv)).toEqual({ code: 2, text: expect.stringContaining(sentence) });
  });
});
