import { spawnSync } from 'node:child_process';
import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { withLockFile } from '../../../src/fs/lock.ts';
import { RunFolder } from '../../../src/fs/run-folder.ts';
import { json } from '../../support/erasure/deletions.ts';
import { DELTA, DUCKDB, event, LAKE, PLACES, setUpErasure } from '../../support/erasure/fixture.ts';
import { HAS_MODES } from '../../support/modes.ts';
import type { Cells } from '../../support/targets/csv.ts';

const erasure = setUpErasure();
const { at, configure, copy, erase, holding, load, only, planOf } = erasure;
const { proofOf, requestedIds, run, runAt, useProfiles, writeList } = erasure;
const IN = () => only(DUCKDB);

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
    useProfiles(csvOf(...people.map((person, i) => [`A-${1000 + i}`, u(person)] as const)));
    await load(rows);
    const erased = people.filter((_, i) => i % 10 === 0);
    const words = ['--file', writeList('ids.txt', erased.map((_, i) => `A-${1000 + i * 10}\n`).join(''))];
    const plan = await planOf(...words);
    expect(plan, plan.said).toMatchObject({ exit: 0, ids: 50, ids_with_profile: 50, warnings: [] });
    expect(erasure.profileExports()).toBe(1);
    const done = await planOf(...words, '--execute', '--confirm', plan.hash);
    const gone = rows.filter((cells) => erased.some((person) => cells.df_unified_id === u(person))).length;
    expect(done.exit, done.said).toBe(0);
    expect(done.places.map(({ rows_removed }) => rows_removed)).toEqual([gone, gone, gone]);
    expect(done.places.map(({ people: n }) => n)).toEqual([50, 50, 50]);
    for (const person of ['p0', 'p250', 'p490']) expect(holding(`marked-log-${person}-1`), person).toEqual([]);
    for (const place of PLACES) expect((await runAt('verify', place)).code, place).toBe(0);
  });

  it('finds people by all profiles of an ID, by the column, and in one place for all', async () => {
    useProfiles(csvOf(['A', u('a1')], ['A', u('a2')], ['B', u('b')]), { by_column: 'member' });
    await load([row('a1'), row('x', 1, { member: 'A' }), row('b')], DUCKDB);
    await load([row('a2'), row('x'), row('b')], LAKE);
    const done = await erase('--id', 'A', ...only(DUCKDB, LAKE));
    expect([done.exit, done.places.map(({ rows_removed }) => rows_removed)], done.said).toEqual([0, [2, 2]]);
    expect(done.warnings).toEqual([
      expect.stringContaining('lake has no column member: people are found there in the'),
    ]);
    for (const person of ['a1', 'a2', 'x']) expect(holding(u(person)), person).toEqual([]);
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
    ['no external id', csvOf(['', 'u1'], ['null', 'u2']), 2, /No profile of the service has a df_external_id/],
  ])('%s decides the erasure if there is no other way', async (_, answer, exit, message) => {
    useProfiles(typeof answer === 'string' ? answer : undefined);
    let asked = 0;
    if (typeof answer === 'number')
      erasure.answerProfiles = (response) => {
        asked++;
        json(response, { result: 'fail' }, answer);
      };
    await load([row('a', 1, { member: 'A' })], DUCKDB);
    const { code: ended, said } = await run('forget', '--id', 'A', ...IN());
    expect([ended, said]).toEqual([exit, expect.stringMatching(message)]);
    // Only a request that is not taken may be taken in another form.
    if ([400, 401, 404].includes(Number(answer))) expect(asked).toBe(answer === 400 ? 2 : 1);
    expect(requestedIds()).toEqual([]);
    const person = await run('person', '--id', 'A', ...IN());
    expect(person.code).toBe(exit);
    const isUnavailable = typeof answer === 'string' || answer === 404 || answer === 400;
    if (!isUnavailable) return;
    const misspelt = await run('forget', '--id', 'A', '--by-column', 'nope', ...IN());
    expect(misspelt.said).toMatch(/profile.* No place has a column nope\. Nothing says how people are found/);
    // A warning is enough if a column is another way.
    configure({ by_column: 'member' }, { suppression_file: undefined });
    const done = await erase('--id', 'A', ...IN());
    expect([done.exit, done.ids_with_profile, done.places[0].rows_removed], done.said).toEqual([0, null, 1]);
    expect(done.warnings[0]).toMatch(/People are found in the places alone/);
    await run('person', '--id', 'A', ...IN());
    expect(readFileSync(at('ledger/ledger.jsonl'), 'utf8')).toContain('"ways":["the column member"]');
  });

  it('is not asked for with a mapping, without a token, and if the configuration says so', async () => {
    useProfiles(csvOf(['A', u('a')]), { by_column: 'member' });
    await load([row('a', 1, { member: 'A' })], DUCKDB);
    const mapping = writeList('mapping.csv', `external_id,df_unified_id\nA,${u('a')}\n`);
    expect((await planOf('--id', 'A', '--mapping', mapping, ...IN())).exit).toBe(0);
    useProfiles(csvOf(), { by_column: 'member', profiles: false });
    expect((await planOf('--id', 'A', ...IN())).exit).toBe(0);
    expect(erasure.profileExports()).toBe(0);
  });
});

describe('the guards of people', () => {
  it('bound everybody whom the ways find, with rows or without', async () => {
    useProfiles(csvOf(...Array.from({ length: 12 }, (_, i) => ['placeholder', u(`p${i}`)] as const)));
    await load([row('p1')], DUCKDB);
    const plan = await planOf('--id', 'placeholder', ...IN());
    expect([plan.exit, plan.guard]).toEqual([5, expect.stringMatching(/12 people have these IDs.*--max-people 12/)]);
    expect((await erase('--id', 'placeholder', '--max-people', '12', ...IN())).exit).toBe(0);
  });

  it.each([
    [1, 10, 0],
    [1, 11, 5],
    [4, 12, 0],
    [4, 13, 5],
  ])('of %i IDs with %i people end with %i: three people an ID are usual, ten at least', async (ids, people, exit) => {
    useProfiles(csvOf(...Array.from({ length: people }, (_, i) => [`A${i % ids}`, u(`p${i}`)] as const)));
    await load([row('p1')], DUCKDB);
    const list = writeList('ids.txt', Array.from({ length: ids }, (_, i) => `A${i}\n`).join(''));
    expect((await planOf('--file', list, ...IN())).exit).toBe(exit);
  });

  it('stop for a person whom rows name and whose profile has another ID: it changed hands', async () => {
    useProfiles(csvOf(['B', u('a')]), { by_column: 'member' });
    await load([row('a', 1, { member: 'A' })], DUCKDB);
    const plan = await planOf('--id', 'A', ...IN());
    expect([plan.exit, plan.guard]).toEqual([5, expect.stringMatching(/changed hands.*--allow-shared/)]);
    expect((await planOf('--id', 'A', '--allow-shared', ...IN())).exit).toBe(0);
    useProfiles(csvOf(['null', u('a')], ['B', u('b')]), { by_column: 'member' });
    expect((await planOf('--id', 'A', ...IN())).exit).toBe(0);
  });
});

describe('an ID that no way finds', () => {
  it('is named by its row, with how a profile differs, and is still requested', async () => {
    useProfiles(csvOf(['A-1009', u('a')], ['B', u('b')], ['  ', u('c')]));
    await load([row('a'), row('b')], DUCKDB);
    const list = writeList('ids.txt', 'B\na-1009\nnobody\n0\n');
    const done = await erase('--file', list, ...IN());
    expect(done).toMatchObject({ exit: 0, ids_with_profile: 1, done: 4 });
    const said = done.warnings.join('\n');
    expect(said).toContain('Rows 2, 3, 4: these IDs were found in no way');
    expect(said).toContain('Run again after the next sync');
    expect(said).toContain('Row 2: there is an ID that differs only in capitals');
    // An ID of zeros alone is not like a blank one.
    expect(said).not.toContain('Row 4: there is');
    expect(said).not.toMatch(/1009|nobody/);
    // Whoever leaves out the zeros as well erases another person.
    useProfiles(csvOf(['123', u('a')], ['0123', u('b')], ['00123', u('c')]));
    const plan = await planOf('--file', writeList('ids.txt', '0123\n0123 \n'), ...IN());
    expect(plan.warnings.join()).toContain(
      'Row 2: there is an ID that differs only in blanks, hyphens or other signs.',
    );
    useProfiles(csvOf(['A-1009', u('a')]));
    const person = await run('person', '--id', 'a-1009', ...IN());
    expect(person).toMatchObject({ code: 0, result: '', said: expect.stringContaining('differs only in capitals') });
  });

  it('is neither warned of nor refused if an earlier run has erased it', async () => {
    useProfiles(csvOf(['A', u('a')], ['B', u('b')]));
    await load([row('a'), row('b')], DUCKDB);
    await erase('--id', 'A', ...IN());
    useProfiles(csvOf(['B', u('b')]));
    const { warnings } = await planOf('--id', 'A', '--purge-only', ...IN());
    expect(warnings).toEqual([expect.stringContaining('No place holds')]);
    // Of an ID that was found nowhere nothing was erased.
    await erase('--id', 'Z', ...IN());
    expect((await planOf('--id', 'Z', ...IN())).warnings.join()).toContain('IDs that no way finds');
    // The service deleted its last profile, and the answer was lost.
    useProfiles(csvOf(['', u('b')]));
    const plan = await planOf('--id', 'A', '--purge-only', ...IN());
    expect([plan.exit, plan.warnings[0]]).toEqual([0, expect.stringMatching(/has a df_external_id\.$/)]);
  });

  it('and its new person stay if they came back, until the ID is requested again', async () => {
    const withTime = { requested_at_field: 'at' };
    const words = (time: string) => [
      ...['--file', writeList('requests.csv', `id,at\nA,${time}\nD,${time}\n`), '--column', 'id'],
      ...IN(),
    ];
    // The profile of D has no row.
    useProfiles(csvOf(['A', u('old')], ['B', u('b')], ['D', u('d')]), withTime);
    await load([row('old'), row('b')], DUCKDB);
    copy('events.duckdb', 'backup.duckdb');
    const first = await erase(...words('2026-01-10T00:00:00Z'));
    expect(first.places[0].rows_removed).toBe(1);
    useProfiles(csvOf(['A', u('new')], ['B', u('b')], ['D', u('new-d')]), withTime);
    await load([row('old'), row('b'), row('new'), row('new-d')], DUCKDB);
    const again = await planOf(...words('2026-01-10T00:00:00Z'), '--execute', '--confirm', first.hash);
    expect([again.exit, again.done_before, again.places[0].rows_removed], again.said).toEqual([0, 2, 0]);
    expect(again.warnings[1]).toMatch(
      /^2 of these IDs have left all places, and will not be looked for: .* --again\.$/,
    );
    for (const person of ['new', 'new-d']) expect(holding(u(person))).toEqual([at('events.duckdb')]);
    expect(requestedIds()).toEqual(['A', 'D']);
    // Rows of a backup leave all the same.
    copy('events.duckdb', 'now.duckdb');
    copy('backup.duckdb', 'events.duckdb');
    expect((await erase(...words('2026-01-10T00:00:00Z'))).places[0]).toMatchObject({ rows: 0, rows_removed: 1 });
    copy('now.duckdb', 'events.duckdb');
    const later = await erase(...words('2026-02-20T00:00:00Z'));
    expect([later.exit, later.places[0].rows_removed], later.said).toEqual([0, 2]);
    expect(requestedIds()).toEqual(['A', 'D', 'A', 'D']);
  });

  it('is warned of and refused if it is requested again, since the person may have come back', async () => {
    useProfiles(csvOf(['A', u('a')], ['B', u('b')]));
    await load([row('a'), row('b')], DUCKDB);
    await erase('--id', 'A', ...IN());
    useProfiles(csvOf(['B', u('b')]));
    const { warnings } = await planOf('--id', 'A', '--again', ...IN());
    expect(warnings.join()).toMatch(/Row 1: this ID was found in no way.*their rows stay/);
    useProfiles(csvOf(['', u('b')]));
    const plan = await run('forget', '--id', 'A', '--again', ...IN());
    expect([plan.code, plan.said]).toEqual([2, expect.stringContaining('Nothing says how people are found')]);
    expect(requestedIds()).toEqual(['A']);
  });

  it('is found by the next run, once a row names it', async () => {
    useProfiles(csvOf(['B', u('b')]), { by_column: 'member' });
    await load([row('b')], DUCKDB);
    const first = await erase('--id', 'A', ...IN());
    expect(first.exit).toBe(0);
    await load([row('b'), row('a', 1, { member: 'A' })], DUCKDB);
    const again = await planOf('--id', 'A', '--execute', '--confirm', first.hash, ...IN());
    expect([again.exit, again.places[0].rows_removed, again.done_before], again.said).toEqual([0, 1, 1]);
  });
});

describe('a suppression list in the folder of the ledger', () => {
  const sync = async () => (await runAt('sync', PLACES[0], '--full-refresh')).code;

  it('has a purge remove everybody on it, also from a place that was restored', async () => {
    useProfiles(csvOf(['A', u('a')], ['B', u('b')], ['C', u('c')]));
    await load([row('a'), row('b'), row('b', 2), row('c')], DUCKDB);
    copy('events.duckdb', 'backup.duckdb');
    expect((await erase('--id', 'B', ...IN())).exit).toBe(0);
    copy('backup.duckdb', 'events.duckdb');
    const done = await erase('--id', 'A', ...IN());
    expect(done.places[0]).toMatchObject({ people: 1, rows: 1, other_people: 1, other_rows: 2, rows_removed: 3 });
    copy('backup.duckdb', 'events.duckdb');
    const planned = async (...words: string[]) => (await erasure.run('forget', ...words, ...IN())).result;
    expect(await planned('--suppressed')).toMatch(/events\.duckdb: 2 people of the suppression list, 3 rows$/m);
    expect(await planned('--file', writeList('list.txt', 'Y\nC\nZ\n'))).toMatch(
      /events\.duckdb: 1 person, 1 row; 2 others of the suppression list, 3 rows; 2 IDs have no row there \(list: rows 1, 3\)$/m,
    );
    const restored = await erase('--suppressed', ...IN());
    expect([restored.exit, restored.places[0].rows_removed, restored.places[0].people], restored.said).toEqual([
      0, 3, 0,
    ]);
    expect((await planOf('--suppressed', ...IN())).warnings.join()).toMatch(/holds anybody of the suppression list/);
    expect(erasure.profileExports()).toBe(5);
    rmSync(at('backup.duckdb'));
    expect([holding(u('a')), holding(u('b'))]).toEqual([[], []]);
  });

  it('that is lost stops syncs and erasures, until a new one is begun', async () => {
    useProfiles(csvOf(['A', u('a')], ['B', u('b')]));
    await load([row('a'), row('b')], DUCKDB);
    await erase('--id', 'A', ...IN());
    rmSync(at('ledger/suppressed.jsonl'));
    const { code, said } = await run('forget', '--id', 'B', ...IN());
    expect([await sync(), code, said]).toEqual([2, 2, expect.stringContaining('forget --suppressed --new-list')]);
    const plan = await planOf('--suppressed', '--new-list', ...IN());
    expect(plan.warnings.join(' ')).toMatch(/knew 1 line of the suppression list, and the list has 0/);
    expect(await sync()).toBe(2);
    const words = ['--suppressed', '--new-list', '--execute', '--confirm', plan.hash];
    expect((await planOf(...words, ...IN())).exit).toBe(0);
    expect(await sync()).toBe(0);
    // The new list does not have her, so that her rows may be back.
    useProfiles(csvOf(['B', u('b')]));
    expect((await planOf('--id', 'A', ...IN())).warnings.join()).toContain('IDs that no way finds');
    expect((await erase('--id', 'B', ...IN())).exit).toBe(0);
  });

  it('needs no key of a hash whose plain id it has, and still finds the hash in a place that was restored', async () => {
    const hashed = { columns_hash: ['df_unified_id'] };
    erasure.env.DFINERY_HASH_KEY = 'a hash key of at least 32 characters';
    useProfiles(csvOf(['A', u('a')]), {}, hashed);
    await load([row('a'), row('b')], DUCKDB);
    copy('events.duckdb', 'backup.duckdb');
    expect((await erase('--id', 'A', ...IN())).places[0].rows_removed).toBe(1);
    copy('backup.duckdb', 'events.duckdb');
    expect((await erase('--suppressed', ...IN())).places[0].rows_removed).toBe(1);
    erasure.env.DFINERY_HASH_KEY = 'another hash key of at least 32 characters';
    const [synced] = await load([row('a'), row('b')], LAKE);
    expect([synced.code, JSON.parse(synced.result).suppressed_rows], synced.said).toEqual([0, 1]);
  });

  it('that is older than the ledger is warned about: list and place came out of one backup', async () => {
    useProfiles(csvOf(['A', u('a')], ['B', u('b')], ['C', u('c')]));
    await load([row('a'), row('b'), row('c')], DUCKDB);
    await erase('--id', 'A', ...IN());
    for (const name of ['events.duckdb', 'ledger/suppressed.jsonl']) copy(name, `${name}.backup`);
    await erase('--id', 'B', ...IN());
    for (const name of ['events.duckdb', 'ledger/suppressed.jsonl']) copy(`${name}.backup`, name);
    const plan = await planOf('--id', 'C', ...IN());
    const sentence = 'The ledger knew 2 lines of the suppression list, and the list has 1: it is an older copy';
    expect([plan.exit, plan.warnings.join(' ')]).toEqual([0, expect.stringContaining(sentence)]);
    // The older list does not have the person of an ID that was deleted.
    expect((await planOf('--id', 'B', ...IN())).places[0].rows).toBe(1);
    // Nor once another erasure has made the list as long as the ledger knew it.
    await erase('--id', 'C', ...IN());
    expect((await planOf('--id', 'B', ...IN())).places[0].rows).toBe(1);
  });
});

it('a row with the time of its request deletes once, and again only for a request after the confirmation', async () => {
  useProfiles(csvOf(['A', u('a')]), { requested_at_field: 'at' });
  await load([row('a')], DUCKDB);
  const request = (time: string) =>
    erase('--file', writeList('requests.csv', `id,at\nA,${time}\n`), '--column', 'id', ...IN());
  // 03:00 in UTC is noon in Seoul: without its zone the row reads as nine hours later.
  for (const time of ['2026-01-20 11:30', '2026-01-20 11:30', '2026-01-20T11:45:00', '2026-01-20T02:59:00Z'])
    expect((await request(time)).exit, time).toBe(0);
  expect(requestedIds()).toEqual(['A']);
  expect((await request('2026-01-20T12:30:00+09:00')).exit).toBe(0);
  expect(requestedIds()).toEqual(['A', 'A']);
});

describe('a plan', () => {
  it('says that an erasure without places leaves rows where they are', async () => {
    useProfiles(csvOf(['A', u('a')]), { places: [] });
    const sentence = 'The erasure has no places: rows that were loaded stay where they are.';
    expect((await planOf('--id', 'A')).warnings).toEqual([sentence]);
  });

  it('is refused if the suppression list cannot be written, before anybody is deleted', async () => {
    useProfiles(csvOf(['A', u('a')]), {}, { suppression_file: 'nowhere/list.jsonl/x.jsonl' });
    await load([row('a')], DUCKDB);
    writeList('nowhere', '');
    const { code, said } = await run('forget', '--id', 'A', ...IN());
    expect([code, said]).toEqual([2, expect.stringContaining('The suppression list')]);
    expect(erasure.profileExports()).toBe(0);
  });

  it.skipIf(spawnSync('mount', ['--version']).status !== 0 || process.getuid?.() !== 0)(
    'is refused for a DuckDB file that is a mount of its own, which nothing could replace',
    async () => {
      useProfiles(csvOf(['A', u('a')]));
      await load([row('a')], DUCKDB);
      const [file, mount] = [at('events.duckdb'), at('mounted.duckdb')];
      writeFileSync(mount, '');
      if (spawnSync('mount', ['--bind', file, mount]).status !== 0) return;
      try {
        for (const words of [
          ['forget', '--id', 'A', '--in', 'duckdb', mount],
          ['compact', 'duckdb', mount],
        ]) {
          const { code, said } = await run(...words);
          expect([code, said]).toEqual([2, expect.stringContaining('mount of its own')]);
        }
      } finally {
        spawnSync('umount', [mount]);
      }
    },
  );

  it.each([LAKE, DELTA])('names files of others in %s, which stay, as report and proof do', async (place) => {
    useProfiles(csvOf(['A', u('a')]));
    await load([row('a'), row('b')], place);
    const copy = 'events/event_date=2026-01-15/copy.parquet';
    const path = `${place.split(' ')[1]}/${copy}`;
    writeList(path, 'mine');
    const plan = await planOf('--id', 'A', ...only(place));
    expect([plan.exit, plan.places[0].foreign]).toEqual([0, [copy]]);
    expect(plan.warnings).toEqual([expect.stringContaining(`also has ${copy}, not made here: they stay`)]);
    expect((await erase('--id', 'A', ...only(place))).exit).toBe(0);
    expect(readFileSync(at(path), 'utf8')).toBe('mine');
    expect(await proofOf('A')).toEqual([0, expect.stringContaining(`stays there: ${copy}`)]);
  });
});

describe('a place that is not purged', () => {
  it('stops every request, and the same command ends with 0 once it is free', async () => {
    useProfiles(csvOf(['A', u('a')]), {}, { lock_wait: '1s' });
    await load([row('a')], DUCKDB, LAKE);
    const words = ['--id', 'A', ...only(DUCKDB, LAKE)];
    const { hash } = await planOf(...words);
    const execute = () => planOf(...words, '--execute', '--confirm', hash);
    // Another writer takes the folder once the file was purged, and has not let go of it in time.
    const lock = { subject: 'the folder', waitMs: 60_000, clock: systemClock };
    const ledger = at('ledger/ledger.jsonl');
    const running = execute();
    const isPurged = () => existsSync(ledger) && readFileSync(ledger, 'utf8').includes('"purged"');
    while (!isPurged()) await new Promise((resolve) => setTimeout(resolve, 5));
    const held = await withLockFile(at('lake/_dfinery/lock'), lock, () => running);
    expect([held.exit, held.requests, requestedIds()], held.said).toEqual([3, 0, []]);
    expect(held.places.map((place) => place.rows_removed)).toEqual([1, null]);
    expect(await proofOf('A')).toEqual([3, expect.stringContaining('open: never asked')]);
    const again = await execute();
    expect([again.exit, requestedIds()], again.said).toEqual([0, ['A']]);
    expect(holding(u('a'))).toEqual([]);
  });

  it('but for what cannot be reached holds no request back, and ends with 3', async () => {
    useProfiles(csvOf(['A', u('a')]));
    await load([row('a')], LAKE);
    mkdirSync(at('lake/events/event_date=2026-01-16'));
    writeList('lake/events/event_date=2026-01-16/data.parquet', 'damaged');
    const words = ['--id', 'A', ...only(LAKE)];
    const { hash } = await planOf(...words);
    const done = await run('forget', ...words, '--execute', '--confirm', hash);
    expect([done.code, requestedIds(), done.result], done.said).toEqual([
      3,
      ['A'],
      expect.stringContaining('not purged whole'),
    ]);
    expect(done.said).toMatch(/parquet .*lake: People may still be there/);
    expect(done.result).not.toContain('People may still be there');
    const proof = await run('forget', '--proof', 'A');
    const sentence = 'Something there could not be reached, and may hold the people: repair it, and purge again.';
    expect([proof.code, proof.result]).toEqual([3, expect.stringContaining(sentence)]);
    await run('forget', '--proof', 'A', '-o', at('proof.html'));
    expect(readFileSync(at('proof.html'), 'utf8')).toContain(sentence);
    rmSync(at('lake/events/event_date=2026-01-16'), { recursive: true });
    // The ID is looked for again, although it is deleted, and rows of it were removed.
    expect((await erase('--id', 'A', ...only(LAKE))).exit).toBe(0);
    expect((await proofOf('A'))[0]).toBe(0);
  });
});

it('a run that is under way is named: it holds downloads of the people until it ends', async () => {
  useProfiles(csvOf(['A', u('a')]));
  await load([row('a')], LAKE);
  const open = (name: string) => RunFolder.open(at(name), systemClock);
  const folders = [await open('lake/_dfinery/tmp'), await open('spool')];
  const erased = erase('--id', 'A', ...only(LAKE)).finally(() => Promise.all(folders.map((folder) => folder.remove())));
  const { exit, warnings } = await erased;
  const paths = folders.map(({ path }) => path).join(', ');
  expect([exit, warnings]).toEqual([0, [expect.stringContaining(`they hold downloads in ${paths}.`)]]);
});

it.runIf(HAS_MODES)('a folder of downloads that others may use is named, and stays', async () => {
  useProfiles(csvOf(['A', u('a')]));
  await load([row('a')], DUCKDB);
  const folder = at('spool/dfinery-spool-abcdef');
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o755);
  const { exit, warnings } = await erase('--id', 'A', ...IN());
  const sentence = `Downloads in folders that are not of this user alone may name the people, and stay: ${folder}.`;
  expect([exit, warnings]).toEqual([0, [sentence]]);
  expect(existsSync(folder)).toBe(true);
});

it('a plan goes on if another purge puts people on the list while it asks for the profiles', async () => {
  useProfiles(csvOf(['A', u('a')], ['B', u('b')]));
  await load([row('a'), row('b')], DUCKDB);
  const { answerProfiles } = erasure;
  erasure.answerProfiles = (response) => {
    erasure.answerProfiles = answerProfiles;
    void erase('--id', 'B', ...IN()).finally(() => answerProfiles(response));
  };
  const plan = await planOf('--id', 'A', ...IN());
  expect([plan.exit, plan.places[0].rows], plan.said).toEqual([0, 1]);
  expect(holding(u('b'))).toEqual([]);
});

describe('the table user_profiles', () => {
  const CSV =
    'df_external_id,df_unified_id,df_name,phone\n' +
    ['a', 'b'].map((person) => `A-${person},${u(person)},marked-name-${person},marked-phone-${person}\n`).join('');
  const edits = { user_profiles: true, columns_drop: ['df_name'], columns_hash: ['df_unified_id', 'phone'] };

  it('has no value that is dropped or hashed; people are found there and purged all the same', async () => {
    erasure.env.DFINERY_HASH_KEY = 'a hash key of at least 32 characters';
    useProfiles(CSV, {}, edits);
    const synced = await load([row('a'), row('b')]);
    expect(synced).toMatchObject([{ code: 0 }, { code: 0 }, { code: 0 }]);
    for (const value of ['marked-name', 'marked-phone', u('')]) expect(holding(value)).toEqual([]);
    // From now on the table alone knows whose an id is.
    useProfiles(undefined, { profiles: false }, edits);
    const person = await run('person', '--id', 'A-a', ...only(...PLACES));
    const lines = person.result.trim().split('\n');
    const shown = lines.map((line) => JSON.parse(line));
    expect(shown).toMatchObject(PLACES.flatMap(() => [{ table: 'events' }, { table: 'user_profiles' }]));
    const hash = expect.stringMatching(/^[0-9a-f]{64}$/);
    expect(shown[1].row).toMatchObject({ df_external_id: 'A-a', df_unified_id: hash, phone: hash });
    expect(shown[1].row).not.toHaveProperty('df_name');
    const done = await erase('--id', 'A-a');
    expect([done.exit, done.places.map(({ rows_removed }) => rows_removed)], done.said).toEqual([0, [2, 2, 2]]);
    expect(holding('A-a')).toEqual([]);
    for (const place of PLACES) expect((await runAt('verify', place)).code, place).toBe(0);
    const again = await load([row('a'), row('b')]);
    expect(again.map(({ result }) => JSON.parse(result).suppressed_rows)).toEqual([1, 1, 1]);
  });

  it('of people whom a purge of another place knew by the plain id loses them by their hashes', async () => {
    erasure.env.DFINERY_HASH_KEY = 'a hash key of at least 32 characters';
    useProfiles(CSV, {}, { columns_hash: ['df_unified_id'] });
    await load([row('a'), row('b')], DUCKDB);
    await load([row('b')], LAKE);
    expect((await erase('--id', 'A-a', ...only(LAKE))).exit).toBe(0);
    const restored = await erase('--suppressed', ...only(DUCKDB));
    expect(restored.places, restored.said).toMatchObject([{ rows_removed: 1 }]);
  });

  it('tells whose an ID is that the service no longer has, unless the person has another one by now', async () => {
    useProfiles(CSV, {}, { user_profiles: true });
    await load([row('a'), row('b')], DUCKDB);
    useProfiles(csvOf(['B', u('a')]), {}, { user_profiles: true });
    expect((await planOf('--id', 'A-a', ...IN())).exit).toBe(5);
    useProfiles(csvOf(['A-b', u('b')]), {}, { user_profiles: true });
    const done = await erase('--id', 'A-a', ...IN());
    expect([done.exit, done.ids_with_profile, done.places[0].rows_removed], done.said).toEqual([0, 0, 2]);
    expect(holding(u('a'))).toEqual([]);
  });

  it('is a way if df_external_id is hashed', async () => {
    erasure.env.DFINERY_HASH_KEY = 'a hash key of at least 32 characters';
    const hashed = { user_profiles: true, columns_hash: ['df_external_id'] };
    useProfiles(CSV, {}, hashed);
    await load([row('a'), row('b')], DUCKDB);
    useProfiles(undefined, { profiles: false }, hashed);
    expect(await planOf('--id', 'A-a', ...IN())).toMatchObject({ exit: 0, warnings: [], places: [{ rows: 2 }] });
    expect((await planOf('--id', 'nobody', ...IN())).exit).toBe(0);
  });

  it('is no way if df_external_id is dropped', async () => {
    const dropped = { user_profiles: true, columns_drop: ['df_external_id'] };
    useProfiles(CSV, {}, dropped);
    await load([row('a')], DUCKDB);
    useProfiles(undefined, { profiles: false }, dropped);
    const said = expect.stringContaining('Nothing says how people are found');
    expect(await run('forget', '--id', 'A-a', ...IN())).toMatchObject({ code: 2, said });
  });

  it('whose file is damaged could miss people: it is refused, unless a mapping is in its place', async () => {
    const verify = async () => (await runAt('verify', LAKE)).code;
    useProfiles(CSV, {}, { user_profiles: true });
    await load([row('a'), row('b')], LAKE);
    appendFileSync(at('lake/user_profiles/data.parquet'), 'x');
    const words = ['--id', 'A-a', ...only(LAKE)];
    const refused = { code: 2, said: expect.stringContaining('user_profiles is damaged') };
    for (const command of ['forget', 'person']) expect(await run(command, ...words), command).toMatchObject(refused);
    expect(await verify()).toBe(1);
    const mapping = writeList('mapping.csv', `external_id,df_unified_id\nA-a,${u('a')}\n`);
    const done = await erase(...words, '--mapping', mapping);
    expect([done.exit, done.error]).toEqual([3, expect.stringContaining('user_profiles')]);
    const [synced] = await load([row('b')], LAKE);
    expect([synced.code, await verify()], synced.said).toEqual([0, 0]);
    expect(holding('marked-name-a')).toEqual([]);
  });
});
