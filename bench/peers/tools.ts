import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { COMMAND, HERE } from '../serving.ts';

const NODE = process.execPath;
const ROOT = resolve(HERE, '../..');
const SCRIPTS = join(ROOT, 'bench/peers');
/** Folder of the tools' virtual environments: each has its own, since their dependencies exclude each other. */
const VENVS = join(ROOT, '.peers');

/** The task of a tool's run. */
export interface Task {
  readonly dir: string;
  readonly days: readonly string[];
  readonly url: string;
  /** Path of the configuration of this program. */
  readonly config: string;
}

/** Another tool that does the same work. */
export interface Peer {
  readonly name: string;
  /** Name of its requirements in `requirements/`, and of its virtual environment; undefined for this program. */
  readonly venv: string | undefined;
  /** Maximum number of rows that it is given: with more of them some tools would take hours. */
  readonly mostRows: number;
  /** Name of the file that it writes, which decides how rows are counted: a DuckDB file, or a stream. */
  readonly target: string;
  readonly command: (task: Task) => readonly string[];
  /** True if the records go to stdout. */
  readonly writesStdout?: boolean;
}

const python = (venv: string, script: string) => () => [binOf(venv, 'python'), join(SCRIPTS, `${script}.py`)];
const binOf = (venv: string, name: string): string => join(VENVS, venv, 'bin', name);

/** Downloads each export with curl, which fails when a transfer does, then runs a command on the files. */
const downloaded = (command: (task: Task) => readonly string[]) => (task: Task) => [
  'bash',
  '-c',
  DOWNLOAD,
  'bash',
  join(task.dir, 'downloads'),
  ...command(task),
];
const DOWNLOAD = `set -e; dir=$1; shift; rm -rf "$dir"; mkdir "$dir"
for day in \${BENCH_DAYS//,/ }; do
  curl -sSf -o "$dir/$day.csv" -H 'Authorization: Bearer bench-export' -H 'Content-Type: application/json' \\
    -d "{\\"events_condition_type\\":\\"all\\",\\"from_date\\":\\"$day\\",\\"to_date\\":\\"$day\\"}" \\
    "$BENCH_URL/api/v1/export/event?service_id=bench"
done
exec "$@"`;

const files = ({ dir, days }: Task) => days.map((day) => join(dir, 'downloads', `${day}.csv`));
const ours =
  (target: string, file: string) =>
  ({ dir, config, days }: Task) => [
    ...[NODE, COMMAND, 'sync', target, join(dir, file), '--config', config],
    ...['--from', days[0], '--to', days.at(-1) ?? '', '--max-wait', '1s', '--log-level', 'error'],
  ];

const MANY = 1_000_000;
const FEW = 200_000;
const DUCKDB = 'events.duckdb';

/**
 * The tools. Sling and ingestr are left out: the packages of an index fetch their programs from elsewhere when first
 * used.
 */
export const PEERS: readonly Peer[] = [
  { name: 'dfinery-elt, DuckDB', venv: undefined, mostRows: MANY, target: DUCKDB, command: ours('duckdb', DUCKDB) },
  {
    name: 'curl and DuckDB, CREATE TABLE AS',
    venv: 'pyarrow',
    mostRows: MANY,
    target: DUCKDB,
    command: downloaded((task) => [...python('pyarrow', 'duckdb_table')(), ...files(task)]),
  },
  { name: 'dlt, Arrow tables', venv: 'dlt', mostRows: MANY, target: DUCKDB, command: python('dlt', 'dlt_arrow') },
  { name: 'dlt, rows', venv: 'dlt', mostRows: FEW, target: DUCKDB, command: python('dlt', 'dlt_rows') },
  {
    name: 'PyAirbyte, CDK source',
    venv: 'pyairbyte',
    mostRows: FEW,
    target: DUCKDB,
    command: python('pyairbyte', 'pyairbyte'),
  },
  {
    name: 'dfinery-elt, Arrow',
    venv: undefined,
    mostRows: MANY,
    target: 'ours.arrows',
    command: ours('arrow', 'ours.arrows'),
  },
  {
    name: 'pyarrow, CSV to Arrow',
    venv: 'pyarrow',
    mostRows: MANY,
    target: 'theirs.arrows',
    command: python('pyarrow', 'pyarrow_ipc'),
  },
];

/** Makes the tool's environment, with exactly the versions listed, unless it is there. */
export function install(venv: string): void {
  const [list, at] = [join(SCRIPTS, 'requirements', `${venv}.txt`), join(VENVS, venv)];
  const done = join(at, 'installed.txt');
  if (existsSync(done) && readFileSync(done, 'utf8') === readFileSync(list, 'utf8')) return;
  console.error(`installing ${venv}`);
  rmSync(at, { recursive: true, force: true });
  execute('python3', ['-m', 'venv', at]);
  execute(join(at, 'bin/pip'), ['install', '--quiet', '--disable-pip-version-check', '-r', list]);
  execute('cp', [list, done]);
}

function execute(command: string, args: readonly string[]): void {
  const { status } = spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}`);
}

/** The environment variables that give the scripts in `bench/peers` their task. */
export const environmentOf = (peer: Peer, { dir, days, url }: Task): NodeJS.ProcessEnv => ({
  BENCH_URL: url,
  BENCH_DAYS: days.join(','),
  BENCH_TARGET: join(dir, peer.target),
  BENCH_SOURCE: join(SCRIPTS, 'source-bench'),
  BENCH_PYTHON: binOf('pyairbyte', 'python'),
  HOME: dir,
  PYTHONDONTWRITEBYTECODE: '1',
  AIRBYTE_OFFLINE_MODE: '1',
  RUNTIME__DLTHUB_TELEMETRY: 'false',
  DO_NOT_TRACK: '1',
});
