import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { measured } from './measure.ts';
import { COMMAND, HERE, SOURCE, span } from './serving.ts';
import type { Prepared } from './shapes.ts';

const BARE = join(HERE, 'bare.js');
const NODE = process.execPath;

/** The environment of a work: the served exports, and a scratch folder with the configuration. */
export interface Place {
  readonly data: Prepared;
  readonly dir: string;
  readonly config: string;
}

/** A command to be measured, and the file or folder that it writes. */
export interface Job {
  readonly command: readonly string[];
  readonly target: string;
  /** File for stdout, if stdout is the target. */
  readonly out?: string;
}

/** A command for which a user waits. If DuckDB alone can do similar work, also its command on the same files. */
export interface Work {
  readonly name: string;
  readonly title: string;
  readonly ours: (place: Place) => Job | Promise<Job>;
  readonly bare?: (place: Place) => Job;
  /** Aimed ratio of time to the bare command, for ten days or more of 20,000 rows or more. */
  readonly aim?: number;
  /** Aimed number of rows a second, for so many rows that the start of the process does not count. */
  readonly rowsPerSecond?: number;
  /** True if the target of the work before stays and is read again. */
  readonly isRereading?: boolean;
}

const command = (target: string, at: string, { config, data }: Place) => [
  ...[NODE, COMMAND, 'sync', target, at, '--config', config],
  ...[...span(data), '--json', '--log-level', 'warn'],
];

const sync = (target: string, name: string) => (place: Place) => ({
  command: command(target, join(place.dir, name), place),
  target: join(place.dir, name),
});

const bare = (what: string, name: string) => (place: Place) => ({
  command: [NODE, BARE, what, join(place.dir, name), ...place.data.files],
  target: join(place.dir, name),
});

const table = { ours: sync('duckdb', 'ours.duckdb'), bare: bare('table', 'bare.duckdb') };

export const WORKS: readonly Work[] = [
  {
    name: 'duckdb',
    title: 'DuckDB file; bare: CREATE TABLE AS',
    ...table,
    aim: 1.3,
  },
  {
    name: 'duckdb-again',
    title: 'DuckDB file, every day read again',
    ...table,
    isRereading: true,
  },
  {
    name: 'parquet',
    title: 'Parquet dataset; bare: COPY, zstd',
    ours: sync('parquet', 'ours'),
    bare: bare('parquet', 'bare.parquet'),
    aim: 1.5,
  },
  {
    name: 'delta',
    title: 'Delta table; bare: COPY, zstd',
    ours: sync('delta', 'ours-delta'),
    bare: bare('parquet', 'bare.parquet'),
  },
  {
    name: 'arrow',
    title: 'Arrow stream',
    ours: sync('arrow', 'ours.arrows'),
  },
  {
    name: 'records',
    title: 'Airbyte RECORDs, one stream; bare: CSV to JSON',
    ours: (place) => read(place, ['events']),
    bare: bare('json', 'bare.json'),
    rowsPerSecond: 150_000,
  },
  {
    name: 'records-3',
    title: 'Airbyte RECORDs, three streams; bare: CSV to JSON',
    ours: (place) => read(place, ['events', 'event_logs', 'event_items']),
    bare: bare('json', 'bare.json'),
  },
];

interface Discovered {
  readonly catalog: { readonly streams: readonly { readonly name: string }[] };
}

/** The source as a platform runs it, with the catalog that it discovers itself before. */
async function read({ data, dir, config }: Place, streams: readonly string[]): Promise<Job> {
  const days = { start_date: data.days[0], end_date: data.days.at(-1) };
  const [settings, catalog] = [join(dir, 'source.json'), join(dir, 'catalog.json')];
  writeFileSync(settings, JSON.stringify({ ...(await import(config, { with: { type: 'json' } })).default, ...days }));
  const discovered = join(dir, 'discovered.jsonl');
  await measured([NODE, SOURCE, 'discover', '--config', settings], discovered);
  writeFileSync(catalog, JSON.stringify({ streams: await configuredStreams(discovered, streams) }));
  const out = join(dir, 'ours.jsonl');
  return { command: [NODE, SOURCE, 'read', '--config', settings, '--catalog', catalog], target: out, out };
}

async function configuredStreams(path: string, names: readonly string[]): Promise<object[]> {
  const { readFile } = await import('node:fs/promises');
  const lines = (await readFile(path, 'utf8')).split('\n');
  const { catalog } = JSON.parse(lines.find((line) => line.includes('"CATALOG"')) ?? '{}') as Discovered;
  return catalog.streams
    .filter(({ name }) => names.includes(name))
    .map((stream) => ({
      stream,
      sync_mode: 'incremental',
      destination_sync_mode: 'append_dedup',
      primary_key: [['_key']],
    }));
}
