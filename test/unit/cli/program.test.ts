import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { nextTurn, systemClock } from '../../../src/base/clock.ts';
import { Stopped } from '../../../src/base/process.ts';
import { VERSION } from '../../../src/base/version.ts';
import { COMMANDS } from '../../../src/cli/commands/commands.ts';
import { runCommandLine } from '../../../src/cli/program.ts';
import { NO_TERMINAL } from '../../../src/cli/terminal/terminal.ts';
import { runHere } from '../../support/processes/command-line.ts';

const run = (line: string, columns = 80) => runHere(line.split(' ').filter(Boolean), { columns });

describe('the command line', () => {
  it.each([
    ['forget --가나다라 x', 'there is no option --가나다라'],
    ['snyc duckdb x', 'there is no command "snyc": did you mean sync? See dfinery-elt --help.'],
    ['t0ken', 'there is no such command: wanted demo, init, sync, load,'],
    ['sync duckbd x', 'there is no target "duckbd": did you mean duckdb?'],
    ['sync t0ken x', 'there is no such target: wanted duckdb, parquet,'],
    ['models parquet x', 'parquet is not possible here: write duckdb FILE.'],
    [
      'sync',
      'TARGET PLACE is missing: write sync duckdb FILE or parquet DIR or delta DIR or delta s3://BUCKET/PREFIX or arrow FILE or arrow -, or set',
    ],
    ['sync t0ken', 'TARGET PLACE is missing: write sync duckdb FILE or'],
    ['verify duckdb x t0ken', 'there is a word too many. See dfinery-elt verify --help.'],
    ['sync duckdb x --form 2026-01-01', 'there is no option --form: did you mean --from?'],
    ['sync duckdb x --colour', 'there is no option --colour. See dfinery-elt sync --help.'],
    ['verify duckdb x --place t0ken', 'there is no option --place: write place into the configuration file'],
    ['sync --token t0ken duckdb x', 'there is no option --token.'],
    [
      'sync duckdb x --export-token t0ken',
      'there is no option --export-token: other users see the command line, so set DFINERY_EXPORT_TOKEN',
    ],
    [
      'sync duckdb x --lookback-days 3',
      'there is no option --lookback-days: write lookback_days into the configuration file, or set DFINERY_LOOKBACK_DAYS.',
    ],
    ['forget --id t0ken --id b', '--id is given more than once.'],
    ['forget --id -A1', '--id has no value: write --id=… for one that begins with a dash.'],
    ['forget --id app://t0ken@x --confirm y', '--execute and --confirm HASH go together'],
    ['report duckdb x -o', '--output has no value: write --output=… for one that begins with a dash.'],
    ['sync duckdb x --dry-run=1', '--dry-run takes no word.'],
    ['forget --id t0ken --purgeOnly=yes', '--purge-only takes no word.'],
    ['person --id x --in duckdb', '--in takes two words: TARGET PLACE.'],
    ['person --in duckbd t0ken --by-column y --id x', 'there is no target "duckbd": did you mean duckdb?'],
    ['plan --from 2026-02-30', '--from is not usable: wanted a day of the calendar as yyyy-MM-dd.'],
    ['sync duckdb x --max-wait t0ken', '--max-wait is not usable: wanted a time such as 30s, 20m or 1h.'],
    ['simulate --port t0ken', '--port is not usable: wanted a whole number from 0 to 65535.'],
    ['plan --log-level loud', '--log-level is not usable: wanted one of debug, info, warn, error.'],
    ['plan --config /none', 'the configuration file /none cannot be read'],
    ['sync delta s3://key:t0ken/x@bucket/lake', 'PLACE has a user name or a key in it'],
    ['inspect s3://t0ken@bucket', 'FILE has a user name or a key in it'],
    ['person --id x --in delta s3://key:t0ken@bucket/lake', '--in has a user name or a key in it'],
    ['plan --config=postgres://u:t0ken@host/x', '--config has a user name or a key in it'],
    ['https://sync:t0ken@host', 'there is no such command: wanted demo,'],
    ['--config t0ken plan', 'the command comes first: dfinery-elt plan, then its options. See dfinery-elt --help.'],
  ])('refuses %j in one sentence, and repeats no word that may be a secret', async (line, sentence) => {
    const { code, stdout, stderr } = await run(line);
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(` ✗ ${sentence}`),
    });
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(stderr).not.toContain('t0ken');
  });

  it.each([
    [['sync', 'parquet', ''], 'PLACE is empty.'],
    [['plan', '--config', ''], '--config is empty.'],
  ])('refuses the empty word of a variable that is not set: %j', async (argv, sentence) => {
    expect(await runHere(argv)).toMatchObject({ code: 2, stderr: expect.stringContaining(` ✗ ${sentence}`) });
  });

  it.each([
    'snyc duckdb x --json',
    'sync duckdb x --schema --json',
    'forget --json --id',
    'plan --config /none --json',
  ])('gives scripts the failure of %j as the last line', async (line) => {
    const { code, stdout } = await run(line);
    const failure = { exit: 2, error: expect.stringMatching(/\w/) };
    expect([code, JSON.parse(stdout)]).toEqual([2, expect.objectContaining(failure)]);
  });

  it('logs as the line asks, also that an option lacks its word', async () => {
    expect((await run('sync --log-format json duckdb x --schema')).stderr).toMatch(/^\{.*"run.failed".*\}\n$/);
  });

  it.each(['', '--help', '-h', 'help'])('shows all commands: %j', async (line) => {
    const { code, stdout } = await run(line);
    expect(code).toBe(0);
    for (const name of Object.keys(COMMANDS)) expect(stdout).toContain(`dfinery-elt ${name}`);
  });

  it.each(['--version', 'sync --version'])('shows the version: %j', async (line) => {
    expect(await run(line)).toMatchObject({ code: 0, stdout: `${VERSION}\n` });
  });

  it.each(Object.keys(COMMANDS))('%s --help shows its options, two examples and the page to read', async (name) => {
    for (const line of [`${name} --help`, `help ${name}`]) {
      const { code, stdout } = await run(line);
      expect(code).toBe(0);
      expect(stdout).toMatch(/^Examples:\n {2}dfinery-elt .*\n {2}dfinery-elt .*$/m);
      expect(stdout).toMatch(/^More: docs\/[\w-]+\.md/m);
      expect(stdout.split('\n').filter((one) => one.length > 80)).toEqual([]);
    }
  });
});

it.each(Object.entries(COMMANDS))('the usage of %s has a word for each argument', async (_name, { usage, load }) => {
  const { targets, arguments: others = {} } = (await load()).command;
  const needed = Object.values(others).filter(({ description }) => description.endsWith('[required]'));
  const countWords = (text: string) => text.match(/\S+/g)?.length ?? 0;
  expect(countWords(usage)).toBe((targets ? 2 : 0) + Object.keys(others).length);
  expect(countWords(usage.replaceAll(/\[.*?\]/g, ''))).toBe(needed.length);
});

it('help shows the options of a command first, and the places that it takes', async () => {
  const { stdout } = await run('verify --help');
  expect(stdout).toContain('TARGET PLACE: duckdb FILE, parquet DIR, delta DIR or delta s3://BUCKET/PREFIX.\n');
  expect((await run('sync --help')).stdout).toMatch(/--dry-run.*Options of all commands:.*--config.*arrow -\./s);
});

it('simulate ends at once if it was stopped while it began', async () => {
  const { code } = await runHere(['simulate', '--port', '0'], { signal: AbortSignal.abort() });
  expect(code).toBe(0);
});

it('a command that a signal has stopped ends with the exit code of the signal', async () => {
  for (const [name, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)
    expect(await runHere(['status', 'duckdb', 'none'], { signal: AbortSignal.abort(new Stopped(name)) })).toMatchObject(
      { code },
    );
});

it('says why a sync failed before it notifies, whose receiver may hang', async () => {
  const service = { DFINERY_BASE_URL: 'http://127.0.0.1:1', DFINERY_SERVICE_ID: 'x' };
  const env = { ...service, DFINERY_NOTIFY_URL: 'http://127.0.0.1:1' };
  const { code, stdout, stderr } = await runHere(['sync', 'duckdb', 'none', '--json'], { env });
  expect(stderr).toMatch(/^.* ✗ export_token is missing.*\n.* ! The notification .* could not be sent.*\n$/);
  const error = expect.stringContaining('export_token is missing');
  expect([code, JSON.parse(stdout)]).toEqual([2, expect.objectContaining({ exit: 2, error })]);
});

it('prints a result once the reader of the log has taken the lines before it', async () => {
  const order: string[] = [];
  const terminal = {
    ...NO_TERMINAL,
    log: () => void order.push('log'),
    drainLog: () => nextTurn().then(() => void order.push('taken')),
    print: async () => void order.push('result'),
  };
  const system = { terminal, clock: systemClock, env: {}, signal: new AbortController().signal };
  await runCommandLine(['status', 'duckdb', 'none', '--json'], system);
  expect(order).toEqual(['log', 'taken', 'result']);
});

it('refuses a column for a single ID', async () => {
  const env = { DFINERY_BASE_URL: 'http://127.0.0.1:1', DFINERY_SERVICE_ID: 'x', DFINERY_LEDGER_DIR: 'none' };
  const { stderr } = await runHere(['forget', '--proof', 'x', '--column', 'c'], { env });
  expect(stderr).toContain('--column needs a list, and a single ID is given.');
});

it('a port of simulate that is taken is refused by name', async () => {
  const holder = createServer();
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
  const { port } = holder.address() as AddressInfo;
  const { code, stderr } = await run(`simulate --port ${port}`);
  holder.close();
  expect([code, stderr]).toEqual([2, expect.stringContaining(`port ${port} cannot be used (EADDRINUSE)`)]);
});
