import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { addDays } from '../../src/base/days.ts';
import { SERVICE_ID } from '../support/service/simulator.ts';
import { type Act, CAP } from './acts.ts';
import type { Line } from './command-line.ts';
import type { Verb } from './connectors.ts';
import { KEYS, START } from './drawn.ts';
import { outputTo, SOURCE_CATALOG } from './platform.ts';
import { PROPERTIES } from './properties.ts';
import type { Work, World } from './world.ts';

/*
 * How the program is configured and called in a world.
 */

/** Writes the configurations with the tokens that are known now; a list may delete so many. */
export function configure(world: World, cap = CAP): void {
  const { dropped, hashed } = world.story.hidden;
  const common = { base_url: world.service.url, service_id: SERVICE_ID };
  const source = {
    ...common,
    ...world.story.config,
    export_token: world.tokens.export,
    start_date: START,
    properties: PROPERTIES,
    properties_condition_type: 'include',
    spool_dir: world.spool,
    memory_limit: '300MB',
    suppression_file: world.suppression,
    suppression_key: KEYS.suppression,
    ...(dropped.length > 0 && { columns_drop: dropped }),
    ...(hashed.length > 0 && { columns_hash: hashed, hash_key: KEYS.hash }),
  };
  const destination = {
    ...common,
    import_token: world.tokens.import,
    dry_run: false,
    max_deletions_per_sync: cap,
    ledger_dir: world.ledger,
    ...(world.story.hasLedgerKey && { ledger_key: KEYS.ledger }),
  };
  writeFileSync(join(world.dir, 'source.json'), JSON.stringify(source), { mode: 0o600 });
  writeFileSync(join(world.dir, 'destination.json'), JSON.stringify(destination), { mode: 0o600 });
}

/** What a process of a story runs. */
export function lineOf(world: World, { what, from, to }: Pick<Act, 'what'> & Partial<Act>): Work {
  const { target, tables, publishes } = world.story;
  if (target === 'airbyte') return readLine(world);
  if (what === 'other') return otherLine(world, 'sync');
  if (what === 'stream') return streamLine(world);
  const place = { [target === 'duckdb' ? 'file' : target === 'parquet' ? 'dir' : 'url']: world.place };
  if (what === 'compact') return { command: `compact ${target}`, options: place };
  const options = {
    ...place,
    tables,
    config: join(world.dir, 'source.json'),
    ...(what === 'refresh' && { fullRefresh: true }),
    ...(from !== undefined && { from: addDays(START, from) }),
    ...(to !== undefined && { to: addDays(START, to) }),
    ...(publishes && { publish: world.published }),
  };
  return { command: `sync ${target}`, options };
}

/** What somebody else runs for their place. */
export const otherLine = (world: World, command: 'sync' | 'compact'): Line => ({
  command: `${command} ${world.otherTarget}`,
  options: {
    [world.otherTarget === 'parquet' ? 'dir' : 'url']: world.other,
    ...(command === 'sync' && { config: join(world.dir, 'source.json') }),
  },
});

/** An Arrow stream of all days. */
export const streamLine = ({ dir }: World): Line & { readonly options: { readonly file: string } } => ({
  command: 'sync arrow',
  options: { file: join(dir, 'events.arrows'), config: join(dir, 'source.json') },
});

/** A platform's read of all days, each record of which `take` gets. */
export function refreshLine(world: World, take: (row: Readonly<Record<string, unknown>>) => void): Verb {
  const [stream] = SOURCE_CATALOG.streams;
  const catalog = { streams: [{ ...stream, sync_mode: 'full_refresh', destination_sync_mode: 'overwrite' }] };
  writeFileSync(join(world.dir, 'catalog.json'), JSON.stringify(catalog));
  const path = (name: string) => join(world.dir, name);
  const words = ['read', '--config', path('source.json'), '--catalog', path('catalog.json')];
  const output = () => outputTo(({ record }) => record !== undefined && take(record.data));
  return { connector: 'source', words, input: [], output, ended: (code) => code };
}

function readLine(world: World): Verb {
  const { state, output, ended } = world.platform;
  const files = {
    config: 'source.json',
    catalog: 'catalog.json',
    ...(state !== undefined && { state: 'state.json' }),
  };
  writeFileSync(join(world.dir, 'catalog.json'), JSON.stringify(SOURCE_CATALOG));
  writeFileSync(join(world.dir, 'state.json'), JSON.stringify(state ?? []));
  const words = Object.entries(files).flatMap(([name, file]) => [`--${name}`, join(world.dir, file)]);
  return { connector: 'source', words: ['read', ...words], input: [], output, ended };
}

/** The events that are asked for, by their names. */
export function wantedEvents({ story }: World): {
  readonly names: readonly string[];
  readonly condition: 'all' | 'include' | 'exclude';
} {
  const { events = [], events_condition_type: condition = 'all' } = story.config as {
    events?: readonly string[];
    events_condition_type?: 'include' | 'exclude';
  };
  return { names: events, condition };
}

export function verifyLine(world: World): Line {
  return { ...lineOf(world, { what: 'compact' }), command: `verify ${world.story.target}` } as Line;
}
