import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { addDays } from '../../src/base/days.ts';
import { SERVICE_ID } from '../support/service/simulator.ts';
import { type Action, CAP } from './actions.ts';
import type { Line } from './command-line.ts';
import { KEYS, START } from './common.ts';
import type { Verb } from './connectors.ts';
import { type StoredTarget, TARGETS } from './places.ts';
import { outputTo, SOURCE_CATALOG } from './platform.ts';
import { PROPERTIES } from './properties.ts';
import type { Simulation, Work } from './simulation.ts';

/*
 * How the program is configured and called in a simulation.
 */

/** Writes the configurations with the tokens that are known now; a list may delete so many. */
export function configure(simulation: Simulation, cap = CAP): void {
  const { dropped, hashed } = simulation.testCase.hidden;
  const common = { base_url: simulation.service.url, service_id: SERVICE_ID };
  const source = {
    ...common,
    ...simulation.testCase.config,
    export_token: simulation.tokens.export,
    start_date: START,
    properties: PROPERTIES,
    properties_condition_type: 'include',
    spool_dir: simulation.spool,
    memory_limit: '300MB',
    suppression_file: simulation.suppression,
    suppression_key: KEYS.suppression,
    ...(dropped.length > 0 && { columns_drop: dropped }),
    ...(hashed.length > 0 && { columns_hash: hashed, hash_key: KEYS.hash }),
  };
  const destination = {
    ...common,
    import_token: simulation.tokens.import,
    dry_run: false,
    max_deletions_per_sync: cap,
    ledger_dir: simulation.ledger,
    ...(simulation.testCase.hasLedgerKey && { ledger_key: KEYS.ledger }),
  };
  writeFileSync(join(simulation.dir, 'source.json'), JSON.stringify(source), { mode: 0o600 });
  writeFileSync(join(simulation.dir, 'destination.json'), JSON.stringify(destination), { mode: 0o600 });
}

/** The command line of a process of a test case. */
export function lineOf(simulation: Simulation, { what, from, to }: Pick<Action, 'what'> & Partial<Action>): Work {
  const { target, tables, publishes } = simulation.testCase;
  if (target === 'airbyte') return readLine(simulation);
  if (what === 'other') return otherLine(simulation, 'sync');
  if (what === 'stream') return streamLine(simulation);
  const place = placeOption(target, simulation.place);
  if (what === 'compact') return { command: `compact ${target}`, options: place };
  const options = {
    ...place,
    tables,
    config: join(simulation.dir, 'source.json'),
    ...(what === 'refresh' && { fullRefresh: true }),
    ...(from !== undefined && { from: addDays(START, from) }),
    ...(to !== undefined && { to: addDays(START, to) }),
    ...(publishes && { publish: simulation.published }),
  };
  return { command: `sync ${target}`, options };
}

/** A place, as commands of its target take it. */
const placeOption = (target: StoredTarget, place: string) => ({ [TARGETS[target].descriptor.place.name]: place });

/** The command line of another user for a place of their own. */
export const otherLine = (simulation: Simulation, command: 'sync' | 'compact'): Line => ({
  command: `${command} ${simulation.otherTarget}`,
  options: {
    ...placeOption(simulation.otherTarget, simulation.other),
    ...(command === 'sync' && { config: join(simulation.dir, 'source.json') }),
  },
});

/** An Arrow stream of all days. */
export const streamLine = ({ dir }: Simulation): Line & { readonly options: { readonly file: string } } => ({
  command: 'sync arrow',
  options: { file: join(dir, 'events.arrows'), config: join(dir, 'source.json') },
});

/** A platform's read of all days, each record of which `take` gets. */
export function refreshLine(simulation: Simulation, take: (row: Readonly<Record<string, unknown>>) => void): Verb {
  const [stream] = SOURCE_CATALOG.streams;
  const catalog = { streams: [{ ...stream, sync_mode: 'full_refresh', destination_sync_mode: 'overwrite' }] };
  writeFileSync(join(simulation.dir, 'catalog.json'), JSON.stringify(catalog));
  const path = (name: string) => join(simulation.dir, name);
  const words = ['read', '--config', path('source.json'), '--catalog', path('catalog.json')];
  const output = () => outputTo(({ record }) => record !== undefined && take(record.data));
  return { connector: 'source', words, input: [], output, ended: (code) => code };
}

function readLine(simulation: Simulation): Verb {
  const { state, output, ended } = simulation.platform;
  const files = {
    config: 'source.json',
    catalog: 'catalog.json',
    ...(state !== undefined && { state: 'state.json' }),
  };
  writeFileSync(join(simulation.dir, 'catalog.json'), JSON.stringify(SOURCE_CATALOG));
  writeFileSync(join(simulation.dir, 'state.json'), JSON.stringify(state ?? []));
  const words = Object.entries(files).flatMap(([name, file]) => [`--${name}`, join(simulation.dir, file)]);
  return { connector: 'source', words: ['read', ...words], input: [], output, ended };
}

/** The events that are asked for, by their names. */
export function wantedEvents({ testCase }: Simulation): {
  readonly names: readonly string[];
  readonly condition: 'all' | 'include' | 'exclude';
} {
  const { events = [], events_condition_type: condition = 'all' } = testCase.config as {
    events?: readonly string[];
    events_condition_type?: 'include' | 'exclude';
  };
  return { names: events, condition };
}

export function verifyLine(simulation: Simulation): Line {
  return { ...lineOf(simulation, { what: 'compact' }), command: `verify ${simulation.testCase.target}` } as Line;
}
