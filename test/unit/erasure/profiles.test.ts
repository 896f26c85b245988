import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { withLockFile } from '../../../src/fs/lock.ts';
import { RunFolder } from '../../../src/fs/run-folder.ts';
import { json } from '../../support/erasure/deletions.ts';
import { event, PLACES, setUpErasure } from '../../support/erasure/fixture.ts';
import type { Cells } from '../../support/targets/csv.ts';

const setup = setUpErasure();
const DUCKDB = PLACES.slice(0, 1);
const only = (...places: readonly string[]) => setup.case.optionsOf(places);
const IN = () => only(...DUCKDB);

/** A profile a pair: the id of the company, and the person of the data. */
const csvOf = (...pairs: readonly (readonly [string, string])[]): string =>
  ['df_external_id,df_unified_id', ...pairs.map((pair) => pair.join(','))].map((line) => `${line}\n`).join('');

/** The events of a world whose rows do not have the id of the company. */
const row = (person: string, n = 1, more: Cells = {}): Cells => event(person, n, { member: '', ...more });

const u = (person: string) => `marked-u-${person}`;

describe('a world whose rows do not have the id of the company', () => {
  it('loses exactly the rows of the people of a list, in every place, by one export a plan', async () => {
    const people = Array.from({ length: 500 }, (_, i) => `p${i}`);
    const rows = people.flatMap((person, i) => Array.from({ length: 1 + (i % 3) }, (_, n) => row(person, n + 1)));
    setup.case.profiles(csvOf(...people.map((person, i) => [`A-${1000 + i}`, u(person)] as const)));
    await setup.case.load(rows);
    const erased = people.filter((_, i) => i % 10 === 0);
    const list = setup.case.list(
      'requests.csv',
      `no,customer\n${erased.map((_, i) => `${i},A-${1000 + i * 10}\n`).join('')}`,
    );
    const words = ['--file', list, '--column', 'customer'];
    const plan = await setup.case.plan(...words);
    expect(plan, plan.said).toMatchObject({ exit: 0, ids: 50, ids_with_profile: 50, warnings: [] });
    expect(setup.case.profileExports).toBe(1);
    const done = await setup.case.plan(...words, '--execute', '--confirm', plan.hash);
    const gone = rows.filter((cells) => erased.some((person) => cells.df_unified_id === u(person))).length;
    expect(done.exit, done.said).toBe(0);
    expect(done.places.map(({ rows_removed }) => rows_removed)).toEqual([gone, gone, gone]);
    expect(done.places.map(({ people: n }) => n)).toEqual([50, 50, 50]);
    for (const person of ['p0', 'p250', 'p490']) {
      expect(setup.case.fixture.holding(`marked-log-${person}-1`), person).toEqual([]);
    }
    for (const place of PLACES) {
      const shown = await setup.case.run('person', '--id', 'A-1001', ...only(place));
      expect(shown.result.split('\n'), place).toHaveLength(2);
      const [target = '', path = ''] = place.split(' ');
      expect((await setup.case.run('verify', target, setup.case.at(path))).code).toBe(0);
    }
    const synced = await setup.case.load(rows);
    expect(synced.map(({ result }) => JSON.parse(result).suppressed_rows)).toEqual([gone, gone, gone]);
  });

  it('finds people by all profiles of an ID, by the column, and in one place for all', async () => {
    setup.case.profiles(csvOf(['A', u('a1')], ['A', u('a2')], ['B', u('b')]), { by_column: 'member' });
    await setup.case.load([row('a1'), row('x', 1, { member: 'A' }), row('b')], DUCKDB);
    await setup.case.load([row('a2'), row('x'), row('b')], PLACES.slice(1, 2));
    const done = await setup.case.erase('--id', 'A', ...only(...PLACES.slice(0, 2)));
    expect([done.exit, done.places.map(({ rows_removed }) => rows_removed)], done.said).toEqual([0, [2, 2]]);
    expect(done.warnings).toEqual([
      expect.stringContaining('lake has no column member: people are found there in the'),
    ]);
    for (const person of ['a1', 'a2', 'x']) expect(setup.case.fixture.holding(u(person)), person).toEqual([]);
  });
});

describe('the answer of the profile export', () => {
  it.each<[string, number | string, number, RegExp]>([
    ['a failure', 503, 3, /people could be missed.*--mapping FILE.*erasure.profiles/],
    ['a limit', 429, 3, /people could be missed/],
    ['a wrong token', 401, 2, /does not accept the export token/],
    ['no such export', 404, 2, /does not export profiles.*--by-column.*--mapping FILE/],
    ['a request that is not taken', 400, 2, /does not export profiles/],
    ['no column of external ids', 'df_unified_id\nu1\n', 2, /have no column df_external_id/],
    ['no external id', csvOf(['', 'u1']), 2, /No profile of the service has a df_external_id/],
  ])('%s decides the erasure if there is no other way', async (_, answer, exit, message) => {
    setup.case.profiles(typeof answer === 'string' ? answer : undefined);
    let asked = 0;
    if (typeof answer === 'number')
      setup.case.answerProfiles = (response) => {
        asked++;
        json(response, { result: 'fail' }, answer);
      };
    await setup.case.load([row('a', 1, { member: 'A' })], DUCKDB);
    const { code: ended, said } = await setup.case.run('forget', '--id', 'A', ...IN());
    expect([ended, said]).toEqual([exit, expect.stringMatching(message)]);
    // Only a request that is not taken may be taken in another form.
    if ([400, 401, 404].includes(Number(answer))) expect(asked).toBe(answer === 400 ? 2 : 1);
    expect(setup.case.requested()).toEqual([]);
    const person = await setup.case.run('person', '--id', 'A', ...IN());
    expect(person.code).toBe(exit);
    const isUnavailable = typeof answer === 'string' || answer === 404 || answer === 400;
    if (!isUnavailable) return;
    // A warning is enough if a column is another way.
    setup.case.configure({ by_column: 'member' }, { suppression_file: undefined });
    const done = await setup.case.erase('--id', 'A', ...IN());
    expect([done.exit, done.ids_with_profile, done.places[0].rows_removed], done.said).toEqual([0, null, 1]);
    expect(done.warnings[0]).toMatch(/People are found in the places alone/);
    await setup.case.run('person', '--id', 'A', ...IN());
    expect(readFileSync(setup.case.at('ledger/ledger.jsonl'), 'utf8')).toContain('"ways":["the column member"]');
  });

  it('is not asked for with a mapping, without a token, and if the configuration says so', async () => {
    setup.case.profiles(csvOf(['A', u('a')]), { by_column: 'member' });
    await setup.case.load([row('a', 1, { member: 'A' })], DUCKDB);
    const mapping = setup.case.list('mapping.csv', `external_id,df_unified_id\nA,${u('a')}\n`);
    expect((await setup.case.plan('--id', 'A', '--mapping', mapping, ...IN())).exit).toBe(0);
    setup.case.profiles(csvOf(), { by_column: 'member', profiles: false });
    expect((await setup.case.plan('--id', 'A', ...IN())).exit).toBe(0);
    expect(setup.case.profileExports).toBe(0);
  });
});

describe('the guards of people', () => {
  it('bound everybody whom the ways find, with rows or without', async () => {
    setup.case.profiles(csvOf(...Array.from({ length: 12 }, (_, i) => ['placeholder', u(`p${i}`)] as const)));
    await setup.case.load([row('p1')], DUCKDB);
    const plan = await setup.case.plan('--id', 'placeholder', ...IN());
    expect([plan.exit, plan.guard]).toEqual([5, expect.stringMatching(/12 people have these IDs.*--max-people 12/)]);
    expect((await setup.case.erase('--id', 'placeholder', '--max-people', '12', ...IN())).exit).toBe(0);
  });

  it('stop for a person whom rows name and whose profile has another ID: it changed hands', async () => {
    setup.case.profiles(csvOf(['B', u('a')]), { by_column: 'member' });
    await setup.case.load([row('a', 1, { member: 'A' })], DUCKDB);
    const plan = await setup.case.plan('--id', 'A', ...IN());
    expect([plan.exit, plan.guard]).toEqual([5, expect.stringMatching(/changed hands.*--allow-shared/)]);
    expect((await setup.case.plan('--id', 'A', '--allow-shared', ...IN())).exit).toBe(0);
  });
});

describe('an ID that no way finds', () => {
  it('is named by its row, with how a profile differs, and is still requested', async () => {
    setup.case.profiles(csvOf(['A-1009', u('a')], ['B', u('b')], ['  ', u('c')]));
    await setup.case.load([row('a'), row('b')], DUCKDB);
    const list = setup.case.list('ids.txt', 'B\na-1009\nnobody\n0\n');
    const done = await setup.case.erase('--file', list, ...IN());
    expect(done).toMatchObject({ exit: 0, ids_with_profile: 1, done: 4 });
    const said = done.warnings.join('\n');
    expect(said).toContain('Rows 2, 3, 4: these IDs were found in no way');
    expect(said).toContain('Run again after the next sync');
    expect(said).toContain('Row 2: there is an ID that differs only in capitals');
    // An ID of zeros alone is not like a blank one.
    expect(said).not.toContain('Row 4: there is');
    expect(said).not.toMatch(/1009|nobody/);
    const person = await setup.case.run('person', '--id', 'a-1009', ...IN());
    expect([person.code, person.result, person.said]).toEqual([
      0,
      '',
      expect.stringContaining('differs only in capitals'),
    ]);
  });

  it('is found by the next run, once a row names it', async () => {
    setup.case.profiles(csvOf(['B', u('b')]), { by_column: 'member' });
    await setup.case.load([row('b')], DUCKDB);
    const first = await setup.case.erase('--id', 'A', ...IN());
    expect(first.exit).toBe(0);
    await setup.case.load([row('b'), row('a', 1, { member: 'A' })], DUCKDB);
    const again = await setup.case.plan('--id', 'A', '--execute', '--confirm', first.hash, ...IN());
    expect([again.exit, again.places[0].rows_removed, again.done_before], again.said).toEqual([0, 1, 1]);
  });
});

describe('a suppression list in the folder of the ledger', () => {
  const load = (rows: readonly Cells[]) => setup.case.load(rows, DUCKDB);
  const sync = async () =>
    (await setup.case.run('sync', 'duckdb', setup.case.at('events.duckdb'), '--full-refresh')).code;

  it('has a purge remove everybody on it, also from a place that was restored', async () => {
    setup.case.profiles(csvOf(['A', u('a')], ['B', u('b')], ['C', u('c')]));
    await load([row('a'), row('b'), row('b', 2), row('c')]);
    setup.case.copy('events.duckdb', 'backup.duckdb');
    expect((await setup.case.erase('--id', 'B', ...IN())).exit).toBe(0);
    setup.case.copy('backup.duckdb', 'events.duckdb');
    const done = await setup.case.erase('--id', 'A', ...IN());
    expect(done.places[0]).toMatchObject({ people: 1, rows: 1, other_people: 1, other_rows: 2, rows_removed: 3 });
    setup.case.copy('backup.duckdb', 'events.duckdb');
    const all = await setup.case.erase('--suppressed', ...IN());
    expect([all.exit, all.places[0].rows_removed, all.places[0].people], all.said).toEqual([0, 3, 0]);
    expect(setup.case.profileExports).toBe(4);
    rmSync(setup.case.at('backup.duckdb'));
    expect([setup.case.fixture.holding(u('a')), setup.case.fixture.holding(u('b'))]).toEqual([[], []]);
  });

  it('that is lost stops syncs and erasures, until a new one is begun', async () => {
    setup.case.profiles(csvOf(['A', u('a')], ['B', u('b')]));
    await load([row('a'), row('b')]);
    await setup.case.erase('--id', 'A', ...IN());
    rmSync(setup.case.at('ledger/suppressed.jsonl'));
    expect([await sync(), (await setup.case.run('forget', '--id', 'B', ...IN())).code]).toEqual([2, 2]);
    const { said } = await setup.case.run('forget', '--id', 'B', ...IN());
    expect(said).toContain('forget --suppressed --new-list');
    const plan = await setup.case.plan('--suppressed', '--new-list', ...IN());
    expect(plan.warnings.join(' ')).toMatch(/knew 1 person on the suppression list, and the list has 0/);
    expect(await sync()).toBe(2);
    const words = ['--suppressed', '--new-list', '--execute', '--confirm', plan.hash];
    expect((await setup.case.plan(...words, ...IN())).exit).toBe(0);
    expect(await sync()).toBe(0);
    expect((await setup.case.erase('--id', 'B', ...IN())).exit).toBe(0);
  });

  it('that is older than the ledger is warned about: list and place came out of one backup', async () => {
    setup.case.profiles(csvOf(['A', u('a')], ['B', u('b')], ['C', u('c')]));
    await load([row('a'), row('b'), row('c')]);
    await setup.case.erase('--id', 'A', ...IN());
    for (const name of ['events.duckdb', 'ledger/suppressed.jsonl']) setup.case.copy(name, `${name}.backup`);
    await setup.case.erase('--id', 'B', ...IN());
    for (const name of ['events.duckdb', 'ledger/suppressed.jsonl']) setup.case.copy(`${name}.backup`, name);
    const plan = await setup.case.plan('--id', 'C', ...IN());
    expect([plan.exit, plan.warnings.join(' ')]).toEqual([
      0,
      expect.stringMatching(
        /The ledger knew 2 people on the suppression list, and the list has 1: it is an older copy/,
      ),
    ]);
  });
});

describe('a row with the time of its request', () => {
  const request = async (at: string, file = 'requests.csv') => {
    writeFileSync(setup.case.at(file), `id,at\nA,${at}\n`);
    return setup.case.erase('--file', setup.case.at(file), '--column', 'id', ...IN());
  };

  it('deletes once, and again only for a request after the confirmation', async () => {
    setup.case.profiles(csvOf(['A', u('a')]), { requested_at_field: 'at' });
    await setup.case.load([row('a')], DUCKDB);
    // 03:00 in UTC is noon in Seoul: without its zone the row reads as nine hours later.
    for (const at of ['2026-01-20 11:30', '2026-01-20 11:30', '2026-01-20T11:45:00', '2026-01-20T02:59:00Z']) {
      expect((await request(at)).exit, at).toBe(0);
    }
    expect(setup.case.requested()).toEqual(['A']);
    expect((await request('2026-01-20T12:30:00+09:00')).exit).toBe(0);
    expect(setup.case.requested()).toEqual(['A', 'A']);
  });
});

describe('a plan', () => {
  it('says that an erasure without places leaves rows where they are, and that a list is empty', async () => {
    setup.case.profiles(csvOf(['A', u('a')]), { places: [] });
    const NOWHERE = 'The erasure has no places: rows that were loaded stay where they are.';
    expect((await setup.case.plan('--id', 'A')).warnings).toEqual([NOWHERE]);
    const plan = await setup.case.plan('--file', setup.case.list('ids.txt', '\n'));
    expect([plan.exit, plan.warnings]).toEqual([0, [NOWHERE, 'The list is empty: nobody is deleted.']]);
  });

  it('is refused if the suppression list cannot be written, before anybody is deleted', async () => {
    setup.case.profiles(csvOf(['A', u('a')]), {}, { suppression_file: 'nowhere/list.jsonl/x.jsonl' });
    await setup.case.load([row('a')], DUCKDB);
    setup.case.list('nowhere', '');
    const { code, said } = await setup.case.run('forget', '--id', 'A', ...IN());
    expect([code, said]).toEqual([2, expect.stringContaining('The suppression list')]);
    expect(setup.case.profileExports).toBe(0);
  });

  it.skipIf(spawnSync('mount', ['--version']).status !== 0 || process.getuid?.() !== 0)(
    'is refused for a DuckDB file that is a mount of its own, which no purge could replace',
    async () => {
      setup.case.profiles(csvOf(['A', u('a')]));
      await setup.case.load([row('a')], DUCKDB);
      const [file, mount] = [setup.case.at('events.duckdb'), setup.case.at('mounted.duckdb')];
      writeFileSync(mount, '');
      if (spawnSync('mount', ['--bind', file, mount]).status !== 0) return;
      try {
        const { code, said } = await setup.case.run('forget', '--id', 'A', '--in', 'duckdb', mount);
        expect([code, said]).toEqual([2, expect.stringContaining('mount of its own')]);
      } finally {
        spawnSync('umount', [mount]);
      }
    },
  );

  it.each(['lake', 'delta'])('names files of others in %s, which stay, as report and proof do', async (name) => {
    setup.case.profiles(csvOf(['A', u('a')]));
    const place = PLACES.filter((words) => words.endsWith(name));
    await setup.case.load([row('a'), row('b')], place);
    const copy = 'events/event_date=2026-01-15/copy.parquet';
    writeFileSync(setup.case.at(`${name}/${copy}`), 'mine');
    const plan = await setup.case.plan('--id', 'A', ...only(...place));
    expect([plan.exit, plan.places[0].foreign]).toEqual([0, [copy]]);
    expect(plan.warnings).toEqual([expect.stringContaining(`also has ${copy}, not made here: they stay`)]);
    expect((await setup.case.erase('--id', 'A', ...only(...place))).exit).toBe(0);
    expect(readFileSync(setup.case.at(`${name}/${copy}`), 'utf8')).toBe('mine');
    const proof = await setup.case.run('forget', '--proof', 'A');
    expect([proof.code, proof.result]).toEqual([0, expect.stringContaining(`stays there: ${copy}`)]);
  });
});

describe('a place that is not purged', () => {
  it('stops every request, and the same command ends with 0 once it is free', async () => {
    setup.case.profiles(csvOf(['A', u('a')]), {}, { lock_wait: '1s' });
    await setup.case.load([row('a')], PLACES.slice(0, 2));
    const words = ['--id', 'A', ...only(...PLACES.slice(0, 2))];
    const { hash } = await setup.case.plan(...words);
    const execute = () => setup.case.plan(...words, '--execute', '--confirm', hash);
    // Another writer takes the folder once the file was purged, and has not let go of it in time.
    const lock = { what: 'the folder', waitMs: 60_000, clock: systemClock };
    const waitForPurge = async () => {
      const running = execute();
      while (!readLedger().includes('"purged"')) await new Promise((resolve) => setTimeout(resolve, 5));
      return withLockFile(setup.case.at('lake/_dfinery/lock'), lock, () => running);
    };
    const readLedger = () => {
      const path = setup.case.at('ledger/ledger.jsonl');
      return existsSync(path) ? readFileSync(path, 'utf8') : '';
    };
    const held = await waitForPurge();
    expect([held.exit, held.requests, setup.case.requested()], held.said).toEqual([3, 0, []]);
    expect(held.places.map((place) => place.rows_removed)).toEqual([1, null]);
    const proof = await setup.case.run('forget', '--proof', 'A');
    expect([proof.code, proof.result]).toEqual([3, expect.stringContaining('open: never asked')]);
    const again = await execute();
    expect([again.exit, setup.case.requested()], again.said).toEqual([0, ['A']]);
    expect(setup.case.fixture.holding(u('a'))).toEqual([]);
  });

  it('but for what cannot be reached holds no request back, and ends with 3', async () => {
    setup.case.profiles(csvOf(['A', u('a')]));
    const place = PLACES.slice(1, 2);
    await setup.case.load([row('a')], place);
    writeFileSync(setup.case.at('lake/events/event_date=2026-01-15/data.parquet'), 'damaged');
    const done = await setup.case.erase('--id', 'A', ...only(...place));
    expect([done.exit, setup.case.requested()], done.said).toEqual([3, ['A']]);
    expect(done.error).toContain('may hold the people');
    const proof = await setup.case.run('forget', '--proof', 'A');
    const sentence = 'Something there could not be reached, and may hold the people: repair it, and purge again.';
    expect([proof.code, proof.result]).toEqual([3, expect.stringContaining(sentence)]);
    await setup.case.run('forget', '--proof', 'A', '-o', setup.case.at('proof.html'));
    expect(readFileSync(setup.case.at('proof.html'), 'utf8')).toContain(sentence);
    await setup.case.load([row('b')], place);
    expect((await setup.case.erase('--id', 'A', ...only(...place))).exit).toBe(0);
    expect((await setup.case.run('forget', '--proof', 'A')).code).toBe(0);
  });
});

it('a run that is under way is named: it holds downloads of the people until it ends', async () => {
  setup.case.profiles(csvOf(['A', u('a')]));
  await setup.case.load([row('a')], DUCKDB);
  const run = await RunFolder.open(setup.case.at('spool'), systemClock);
  try {
    const done = await setup.case.erase('--id', 'A', ...IN());
    expect([done.exit, done.warnings]).toEqual([0, [expect.stringContaining(`they hold downloads in ${run.path}`)]]);
  } finally {
    await run.remove();
  }
});

it('a plan goes on if another purge puts people on the list while it asks for the profiles', async () => {
  setup.case.profiles(csvOf(['A', u('a')], ['B', u('b')]));
  await setup.case.load([row('a'), row('b')], DUCKDB);
  const { answerProfiles } = setup.case;
  setup.case.answerProfiles = (response) => {
    setup.case.answerProfiles = answerProfiles;
    void setup.case.erase('--id', 'B', ...IN()).finally(() => answerProfiles(response));
  };
  const plan = await setup.case.plan('--id', 'A', ...IN());
  expect([plan.exit, plan.places[0].rows], plan.said).toEqual([0, 1]);
  expect(setup.case.fixture.holding(u('b'))).toEqual([]);
});

describe('the table user_profiles', () => {
  const CSV =
    'df_external_id,df_unified_id,df_name,phone\n' +
    ['a', 'b'].map((person) => `A-${person},${u(person)},marked-name-${person},marked-phone-${person}\n`).join('');
  const edits = {
    user_profiles: true,
    columns_drop: ['df_name'],
    columns_hash: ['df_unified_id', 'phone'],
  };

  it('has no value that is dropped or hashed; people are found there and purged all the same', async () => {
    setup.case.env.DFINERY_HASH_KEY = 'a hash key of at least 32 characters';
    setup.case.profiles(CSV, {}, edits);
    const synced = await setup.case.load([row('a'), row('b')]);
    expect(
      synced.map(({ code }) => code),
      synced[0].said,
    ).toEqual([0, 0, 0]);
    for (const value of ['marked-name', 'marked-phone', u('')]) expect(setup.case.fixture.holding(value)).toEqual([]);
    // From now on the table alone knows whose an id is.
    setup.case.profiles(undefined, { profiles: false }, edits);
    const person = await setup.case.run('person', '--id', 'A-a', ...only(...PLACES));
    const shown = person.result
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(
      shown.map(({ table }) => table),
      person.said,
    ).toEqual(PLACES.flatMap(() => ['events', 'user_profiles']));
    const hash = expect.stringMatching(/^[0-9a-f]{64}$/);
    expect(shown[1].row).toMatchObject({ df_external_id: 'A-a', df_unified_id: hash, phone: hash });
    expect(shown[1].row).not.toHaveProperty('df_name');
    const done = await setup.case.erase('--id', 'A-a');
    expect([done.exit, done.places.map(({ rows_removed }) => rows_removed)], done.said).toEqual([0, [2, 2, 2]]);
    expect(setup.case.fixture.holding('A-a')).toEqual([]);
    for (const place of PLACES) {
      const [target = '', path = ''] = place.split(' ');
      expect((await setup.case.run('verify', target, setup.case.at(path))).code, place).toBe(0);
    }
  });

  it('whose file is damaged is named by the plan, the purge, a person and the proof of its files', async () => {
    const place = PLACES.slice(1, 2);
    const verify = async () => (await setup.case.run('verify', 'parquet', setup.case.at('lake'))).code;
    setup.case.profiles(CSV, {}, { user_profiles: true });
    await setup.case.load([row('a'), row('b')], place);
    appendFileSync(setup.case.at('lake/user_profiles/data.parquet'), 'x');
    const plan = await setup.case.plan('--id', 'A-a', ...only(...place));
    expect([plan.exit, plan.said]).toEqual([0, expect.stringContaining('user_profiles is damaged')]);
    const person = await setup.case.run('person', '--id', 'A-a', ...only(...place));
    expect(person.said).toContain('user_profiles is damaged');
    const done = await setup.case.erase('--id', 'A-a', ...only(...place));
    expect([done.exit, done.error, await verify()]).toEqual([3, expect.stringContaining('user_profiles'), 1]);
    const [synced] = await setup.case.load([row('b')], place);
    expect([synced.code, await verify()], synced.said).toEqual([0, 0]);
    expect(setup.case.fixture.holding('marked-name-a')).toEqual([]);
  });
});
