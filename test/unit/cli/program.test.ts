import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { exitOf } from '../../../src/cli/commands/check.ts';
import { runCommandLine } from '../../../src/cli/program.ts';
import { STATEFUL_TARGETS, TARGETS } from '../../../src/targets/targets.ts';

const namesOf = (targets: typeof TARGETS) => targets.map(({ name }) => name).join(', ');

afterEach(() => vi.unstubAllEnvs());

const run = (...argv: string[]) => runAt(80, argv);

async function runAt(columns: number, argv: readonly string[]) {
  const said: string[] = [];
  const say = (line: string) => void said.push(line);
  const code = await runCommandLine(argv, {
    terminal: { result: say, note: say, record: async (line) => say(line), interactive: false, columns },
    clock: systemClock,
    env: () => undefined,
    signal: new AbortController().signal,
  });
  return { code, text: said.join('\n') };
}

/** The error in the JSON on the last line of a command line that ends with 2. */
async function failureIn(argv: readonly string[]): Promise<string> {
  const { code, text: said } = await run(...argv);
  const [last = ''] = said.split('\n').slice(-1);
  expect([code, last]).toEqual([2, expect.stringMatching(/^{/)]);
  const { exit, error } = JSON.parse(last);
  expect(exit).toBe(2);
  return error;
}

describe('the command line', () => {
  it.each(['ko_KR.UTF-8', 'de_DE.UTF-8', 'C', ''])('prints English, under the locale %j too', async (locale) => {
    for (const name of ['LC_ALL', 'LC_MESSAGES', 'LANG', 'LANGUAGE']) vi.stubEnv(name, locale);
    expect(await run('--help')).toEqual({ code: 0, text: expect.stringMatching(/^Commands:$/m) });
    expect(await run('sync', 'duckdb', 'x', '--colour')).toEqual({
      code: 2,
      text: expect.stringContaining('there is no option --colour: see dfinery-elt sync duckdb --help.'),
    });
  });

  it.each([
    [['forget', '--id', 'a', '--id', 'b'], '--id is given more than once.'],
    [['forget', '--id=a', '--id', 'b'], '--id is given more than once.'],
    [['report', 'duckdb', 'x', '-o', 'a', '-o', 'b'], '-o is given more than once.'],
    [['forget', '--verify-ledger', 'x', '--head', ''], '--head is empty.'],
    [['forget', '--proof', '', '--ledger-dir', 'x'], '--proof is empty.'],
    [['forget', '--id'], '--id is empty.'],
    [['report', 'duckdb', 'x', '-o'], '--output is empty.'],
    [['forget', '--id', '--execute'], '--id is empty.'],
    [['forget', '--id', '--'], '--id is empty.'],
    [['sync', 'duckdb', 'x', '--xcom', '--', '--config', '/none'], '--xcom is empty.'],
    [['forget', '--query', '-- who\nSELECT 1'], 'there is no dfinery-destination.json here'],
    [['forget', '--proof', '-x'], '--proof needs --ledger-dir DIR.'],
    [
      ['forget', '--id', 'x', '--ledger-dir', 'y'],
      '--ledger-dir needs --proof: a deletion writes to the ledger_dir of',
    ],
    [['forget', '--id', 'x', '--confirm', 'y'], '--confirm needs --execute.'],
    [['forget', '--verify-ledger', 'x', '--column', 'y'], '--column needs --file.'],
    [['forget', '--id', 'x', '--head', 'y'], '--head needs --verify-ledger or --proof.'],
    [['forget', '--id', 'x', '--mapping', 'y'], '--mapping needs --purge: people are looked up in what was loaded.'],
    [['person', '--id', 'x', '--by-column', 'y', '--in', 'csv', 'z'], '--in names "csv", wanted "duckdb FILE" or'],
    [['forget', '--proof', 'x', '--purge', 'duckdb', 'y'], '--purge needs --id or --file or --query.'],
    [
      ['forget', '--proof', 'x', '--id', 'y'],
      'It takes exactly one of --id or --file or --query or --verify-ledger or --proof.',
    ],
    [
      ['models', 'duckdb', 'x', '--spool-dir', 'y'],
      'there is no option --spool-dir: see dfinery-elt models duckdb --help.',
    ],
    [['forget', '--id', 'x', '--lock-wait', 'long'], '--lock-wait is "long", wanted a time such as 30s'],
    [['forget', '--id', '-x', '--config', '/none'], '/none cannot be read'],
    [['forget', '--file', '-', '--config', '/none'], '/none cannot be read'],
    [['plan', '--from', ''], '--from is empty.'],
    [['plan', '--from', '2026-02-30'], '--from is "2026-02-30", wanted a day of the calendar as yyyy-MM-dd.'],
    [['discover', '--max-wait', ''], '--max-wait is empty.'],
    [['sync', 'duckdb', 'x', '--also', 'parquet'], '--also lacks a word: wanted a target and its place.'],
    [['sync', 'duckdb', 'x', '--also'], '--also is empty.'],
    [['sync', 'duckdb'], 'FILE is missing: see dfinery-elt sync duckdb --help.'],
    [['verify', 'duckdb', 'x', 'y'], '"y" is a word too many'],
    [['forget', 'erna'], 'there is a word too many (an ID is given with --id): see dfinery-elt forget --help.'],
    [['plan', '--full-refresh=yes'], '--full-refresh takes no value.'],
    [['plan', '--full-refresh', '--full-refresh'], '--full-refresh is given more than once.'],
    [['--config', '/none', 'plan'], '/none cannot be read'],
    [['sync', '--config', '/none', 'duckdb', 'x'], '/none cannot be read'],
    [
      ['verify', '--lock-wait', '1s', 'duckdb', '/none'],
      '/none does not exist, or holds no table of this program: give another place.',
    ],
    [['forget', '--id=--x', '--config', '/none'], '/none cannot be read'],
    [['forget', '--id', 'x', '--also'], 'there is no option --also: see dfinery-elt forget --help.'],
    [
      ['plan', '--constructor', 'x'],
      'there is no option --constructor (did you mean --to?): see dfinery-elt plan --help.',
    ],
    [
      ['report', 'duckdb', 'x', '-o', 'a', '--history-days', '0'],
      '--history-days is "0", wanted a whole number from 1',
    ],
  ])('names an option that is empty, repeated or invalid: %j', async (argv, sentence) => {
    expect(await run(...argv)).toEqual({ code: 2, text: expect.stringContaining(sentence) });
  });

  it('takes swapped letters for the option that has them, not for a longer one that holds the word', async () => {
    const { text } = await run('sync', 'duckdb', 'x', '--form', '2026-01-01');
    expect(text).toContain('there is no option --form (did you mean --from?)');
  });

  it.each([
    [['verify', 'duckdb', 'x', '--place', 'y'], 'there is no option --place: see dfinery-elt verify duckdb --help.'],
    [
      ['inspect', 'x.csv', '--file', 'y.csv'],
      'there is no option --file (did you mean FILE?): see dfinery-elt inspect --help.',
    ],
  ])('refuses an option with the name of an argument: %j', async (argv, sentence) => {
    expect(await run(...argv)).toEqual({ code: 2, text: expect.stringContaining(sentence) });
  });

  it.each([
    [['forget', '--id', '--erna'], '--id is empty.'],
    [['forget', '--query', '--who\nSELECT 1'], '--query is empty.'],
    [['person', '--in', 'duckdb', '--erna'], '--in lacks a word: wanted a target and its place.'],
    [['forget', '--id=', '--erna'], '--id is empty.'],
  ])('does not name what may be the value of the option before it: %j', async (argv, sentence) => {
    expect(await run(...argv)).toEqual({ code: 2, text: expect.stringMatching(new RegExp(`✗ ${sentence}$`)) });
  });

  it.each([
    [['help', 'forget'], 'dfinery-elt forget'],
    [['forget', 'help'], 'dfinery-elt forget'],
    [['demo', 'help'], 'dfinery-elt demo [file]'],
    [['help', 'sync'], 'dfinery-elt sync <target>'],
    [['sync', 'duckdb', 'help'], 'dfinery-elt sync duckdb <file>'],
    [['help'], 'dfinery-elt <command>'],
  ])('shows the help that is asked for by a word: %j', async (argv, usage) => {
    const { code, text: said } = await run(...argv);
    expect({ code, usage: said.split('\n', 1)[0] }).toEqual({ code: 0, usage });
  });

  it.each(['--help', 'sync --help', 'sync duckdb --help', 'forget --help', 'plan --help'])(
    'shows help that fits the terminal and names the exit codes: %s',
    async (words) => {
      for (const columns of [80, 100]) {
        const { text: help } = await runAt(columns, words.split(' '));
        expect(help.split('\n').filter((line) => line.length > columns)).toEqual([]);
        expect(help.replaceAll(/\s+/g, ' ')).toContain('3 try again later; 4 days are lost at the service');
      }
    },
  );

  it('lists in the help of forget the variables that it reads, and none that it ignores', async () => {
    const { text: help } = await run('forget', '--help');
    expect(help).toContain('DFINERY_LEDGER_DIR');
    expect(help).not.toMatch(/DFINERY_(DRY_RUN|STREAMS)/);
  });

  it.each([
    ['forget', '--json', '--json', '--id', 'x'],
    ['sync', '--json', 'duckdb', 'x', '--from', '2026-01-01', '--from', '2026-01-02'],
    ['plan', '--json', '--json'],
  ])('gives scripts the failure where an option is repeated: %j', async (...argv) => {
    expect(await failureIn(argv)).toContain('more than once');
  });

  it.each([
    ['sync', 'duckdb', 'x', '--json=1'],
    ['sync', '--json=yes', 'duckdb', 'x'],
    ['forget', '--id', 'x', '--json=0'],
    ['verify', 'duckdb', 'x', '--json='],
  ])('takes no value for --json, and says so as JSON: %j', async (...argv) => {
    expect(await failureIn(argv)).toContain('--json takes no value.');
  });

  it.each([
    ['verify', 'duckdb', '/none'],
    ['compact', 'parquet', '/none'],
    ['report', 'delta', '/none', '-o', '/none/x.html'],
    ['models', 'duckdb', '/none'],
    ['inspect', '/none'],
    ['plan', '--config', '/none'],
    ['check', '--config', '/none'],
  ])('gives scripts the failure of any command that has --json: %j', async (...argv) => {
    expect(await failureIn([...argv, '--json'])).toContain('/none');
  });

  it('gives scripts the failure of an option whose value was forgotten before --json', async () => {
    expect(await failureIn(['sync', 'duckdb', 'x', '--xcom', '--json'])).toBe('--xcom is empty.');
  });

  it.each([
    ['--export-token=abc', 'set DFINERY_EXPORT_TOKEN, or DFINERY_EXPORT_TOKEN_FILE to the path of a file'],
    ['--hash-key', 'set DFINERY_HASH_KEY, or DFINERY_HASH_KEY_FILE'],
    ['--ledgerKey', 'there is no option --ledgerKey'],
    ['--window-days=3', 'window_days is a key of the configuration file, or set DFINERY_WINDOW_DAYS.'],
  ])('says how to give a configuration key that was written as an option: %s', async (option, sentence) => {
    const { code, text: said } = await run('sync', 'duckdb', 'x', option);
    expect({ code, said }).toEqual({ code: 2, said: expect.stringContaining(sentence) });
    expect(said).not.toContain('abc');
  });

  it.each([
    [['--export-token', 'abc']],
    [['sync', '--export-token', 'abc', 'duckdb', 'x']],
    [['check', 'abc', '--hash-key']],
    [['forget', '--import-token', 'abc', 'abc']],
  ])('repeats no word of a command line that has a secret as an option: %j', async (argv) => {
    const { code, text: said } = await run(...argv);
    expect({ code, said }).toEqual({ code: 2, said: expect.stringContaining('so set DFINERY_') });
    expect(said).not.toContain('abc');
  });

  it.each([
    [['--token', 'abc']],
    [['--token', 'abc', 'sync', 'duckdb', 'x']],
    [['sync', '--token', 'abc', 'duckdb', 'x']],
    [['sync', '--token', 'abc']],
    [['verify', '-t', 'abc', 'duckdb', 'x']],
  ])('repeats no word that may be the value of an unknown option: %j', async (argv) => {
    const { code, text: said } = await run(...argv);
    expect({ code, said }).toEqual({ code: 2, said: expect.stringMatching(/ there is no option -(-token|t)\b/) });
    expect(said).not.toContain('abc');
  });

  it.each([
    ['person', '--in', 'events.duckdb', 'abc', '--by-column', 'y', '--id', 'x'],
    ['forget', '--purge', 'events.duckdb', 'abc', '--purge-column', 'y', '--id', 'x'],
  ])('repeats no word that may be an id behind one that is no target: %s %s', async (...argv) => {
    expect((await run(...argv)).text).not.toContain('abc');
  });

  it('repeats no word where the command is the value of an option', async () => {
    const { code, text: said } = await run('--proof', 'forget', 'abc', '--json');
    expect({ code, said }).toEqual({
      code: 2,
      said: expect.stringContaining(' which command? See dfinery-elt --help'),
    });
    expect(said).not.toContain('abc');
  });

  it.each([
    [['nonsense', 'x', '--json'], 'there is no command "nonsense": wanted demo, init, sync, '],
    [['sync', 'nonsense', 'x'], `sync knows no "nonsense": wanted ${namesOf(TARGETS)}.`],
    [['sync'], `sync needs a target: wanted ${namesOf(TARGETS)}.`],
    [['verify', 'arrow', 'x'], `verify knows no "arrow": wanted ${namesOf(STATEFUL_TARGETS)}.`],
    [['plan', '--log-level', 'loud'], '--log-level is "loud", wanted one of debug, info, '],
  ])('names the unknown word and the known ones in one line: %j', async (argv, sentence) => {
    const { code, text: said } = await run(...argv);
    expect({ code, said }).toEqual({ code: 2, said: expect.stringContaining(` ${sentence}`) });
    expect(said.split('\n')).toHaveLength(1);
  });
});

describe('the port of simulate', () => {
  it('is refused by name if it cannot be used', async () => {
    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = holder.address() as AddressInfo;
      for (const [given, sentence] of [
        [String(port), `--port ${port} cannot be used (EADDRINUSE): give another, or 0 for a free one.`],
        ['70000', '--port is "70000", wanted a whole number from 0 to 65535.'],
        ['-1', '--port is "-1"'],
      ]) {
        const refused = { code: 2, text: expect.stringContaining(sentence) };
        expect(await run('simulate', '--port', given)).toEqual(refused);
      }
    } finally {
      holder.close();
    }
  });
});

describe('a JSON file that a command is given', () => {
  it('is refused by its path when it is empty', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'dfinery-program-'));
    try {
      const path = join(dir, 'scenario.json');
      writeFileSync(path, '\n');
      const refused = { code: 2, text: expect.stringContaining(`the scenario ${path} is not valid JSON.`) };
      expect(await run('simulate', '--port', '0', '--scenario', path)).toEqual(refused);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});

describe('the exit code of check', () => {
  it.each([
    ['ok', true, 'ok', 0],
    ['quota_spent', true, 'too_many_api_requests', 0],
    ['inconclusive', true, 'invalid_parameter', 0],
    ['inconclusive', false, 'client_connection_closed', 3],
    ['wrong_token', false, 'unauthorized_token', 2],
    ['unreachable', false, 'refused', 3],
    ['unreachable', false, 'certificate', 2],
  ] as const)('%s, usable %s, %s: %i', (kind, usable, code, exit) => {
    expect(exitOf({ kind, usable, code })).toBe(exit);
  });
});
