import fs, { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Answer, code, json, SUCCESS } from '../../support/erasure/deletions.ts';
import { event, PLACES, setUpErasure } from '../../support/erasure/fixture.ts';
import { expectMode } from '../../support/modes.ts';
import { withCall } from '../../support/system-calls.ts';

const setup = setUpErasure();
const ROWS = [event('m1'), event('m1', 2), event('m2'), event('m3')];
const DUCKDB = PLACES.slice(0, 1);
const only = (...places: readonly string[]) => setup.case.optionsOf(places);

describe('an erasure', () => {
  it('removes people from the service and from every byte of three places, and proves it', async () => {
    await setup.case.load(ROWS);
    const list = setup.case.list('requests.csv', 'name,customer\nx,m1\ny,m2\n');
    const words = ['--file', list, '--column', 'customer'];
    const shown = await setup.case.run('person', ...words, '-o', setup.case.at('../rows.jsonl'));
    expect(shown.code, shown.said).toBe(0);
    expect(readFileSync(setup.case.at('../rows.jsonl'), 'utf8').trim().split('\n')).toHaveLength(9);
    rmSync(setup.case.at('../rows.jsonl'));

    const plan = await setup.case.plan(...words);
    expect(plan).toMatchObject({ mode: 'plan', exit: 0, ids: 2, to_request: 2, warnings: [] });
    expect(plan.places.map(({ people, rows, rows_removed }) => [people, rows, rows_removed])).toEqual([
      [2, 3, null],
      [2, 3, null],
      [2, 3, null],
    ]);
    expect(setup.case.requested()).toEqual([]);

    const done = await setup.case.plan(...words, '--execute', '--confirm', plan.hash);
    expect(done, done.said).toMatchObject({ mode: 'executed', exit: 0, done: 2, undecided: 0 });
    expect(done.places.map(({ rows_removed }) => rows_removed)).toEqual([3, 3, 3]);
    expect(setup.case.requested().toSorted()).toEqual(['m1', 'm2']);
    for (const text of ['marked-u-m1', 'marked-row-m1', 'marked-log-m2']) {
      expect(setup.case.fixture.holding(text), text).toEqual([]);
    }

    const proof = await setup.case.run(
      'forget',
      '--proof-file',
      list,
      '--column',
      'customer',
      '--head',
      done.head ?? '',
    );
    expect(proof.code, proof.said).toBe(0);
    expect(proof.result).toMatch(
      /Row 2 of the list .*\n.*the service confirmed the deletion\n.*duckdb .*: 2 rows removed/,
    );
    // Of each place in the summary, and of each ID in each place.
    expect(proof.result.match(/rows? removed/g)).toHaveLength(3 + 6);
    const none = await setup.case.run('forget', '--proof', 'm3');
    expect([none.code, none.result]).toEqual([1, expect.stringContaining('no answer and no removal')]);

    const synced = await setup.case.load(ROWS);
    expect(synced.map(({ code: exit, result }) => [exit, JSON.parse(result).suppressed_rows])).toEqual(
      Array(3).fill([0, 3]),
    );
  });

  it.each<[string, Answer, number]>([
    ['a 404 without a code', (_, response) => json(response, 'Not Found', 404), 0],
    ['502', (_, response) => json(response, 'Bad gateway', 502), 3],
  ])('removes everybody from the places although the service answers an unknown ID by %s', async (_, unknown, exit) => {
    await setup.case.load(ROWS, DUCKDB);
    setup.case.answer = (deletion, response, nth) =>
      deletion.id === 'm1' ? json(response, SUCCESS) : unknown(deletion, response, nth);
    const list = setup.case.list('ids.txt', 'm1\nm2\n');
    const words = ['--file', list, ...only(...DUCKDB)];
    const done = await setup.case.erase(...words);
    expect([done.exit, done.places[0].rows_removed], done.said).toEqual([exit, 3]);
    expect(setup.case.fixture.holding('marked-u-m2')).toEqual([]);
    if (exit === 0) return;
    expect(done.error).toContain('1 of 2 IDs are deleted at the service. Undecided: 1');
    setup.case.fixture.clock.pass(3 * 86_400_000);
    setup.case.answer = (_deletion, response) => json(response, SUCCESS);
    setup.case.server.seen.length = 0;
    const monday = await setup.case.plan(...words, '--execute', '--confirm', done.hash);
    expect([monday.exit, setup.case.requested()], monday.said).toEqual([0, ['m2']]);
  });

  it('names by its row an ID that a place holds with another spelling, and how it differs', async () => {
    await setup.case.load([...ROWS, event('김')], DUCKDB);
    for (const [difference, id] of [
      ['blanks at its edges', 'm1 '],
      ['blanks at its edges', '\u00a0m1'],
      ['capitals', 'M1'],
      ['leading zeros', '00m1'],
      ['its Unicode form', '김'.normalize('NFD')],
    ]) {
      const plan = await setup.case.plan('--id', id, ...only(...DUCKDB));
      const said = plan.warnings.join(' ');
      expect(said).toContain('Row 1: this ID was found in no way');
      expect(said).toContain(`Row 1: there is an ID that differs only in ${difference}`);
      expect(said).not.toMatch(/m1|김/i);
      expect(plan.places[0]).toMatchObject({ rows: 0, ids_without_rows: 1, row_numbers: [1] });
    }
  });

  it('requests nobody again whom the ledger knows as deleted, unless asked to', async () => {
    await setup.case.load(ROWS, DUCKDB);
    setup.case.list('ids.txt', 'm1\n');
    const words = ['--file', setup.case.at('ids.txt'), ...only(...DUCKDB)];
    await setup.case.erase(...words);
    // Another officer, in another folder, with another list and the same ledger.
    const config = setup.case.configure(
      { ledger_dir: '../ledger' },
      { suppression_file: '../suppressed.jsonl' },
      'b/dfinery.json',
    );
    setup.case.list('ids.txt', 'm1\nm2\n');
    const second = await setup.case.erase(...words, '--config', config);
    expect(second).toMatchObject({ exit: 0, done_before: 1, done: 1 });
    expect(second.warnings[0]).toMatch(
      /^1 ID was deleted at the service before \(2026-01-2\d\), and will not be requested again/,
    );
    expect(setup.case.requested()).toEqual(['m1', 'm2']);
    expect((await setup.case.erase(...words, '--again')).done).toBe(2);
    expect(setup.case.requested()).toEqual(['m1', 'm2', 'm1', 'm2']);
  });

  it('purges alone, without a request and without a token', async () => {
    await setup.case.load(ROWS, DUCKDB);
    setup.case.env = { DFINERY_SUPPRESSION_KEY: setup.case.env.DFINERY_SUPPRESSION_KEY };
    const done = await setup.case.erase('--id', 'm1', '--purge-only', ...only(...DUCKDB));
    expect([done.exit, done.places[0].rows_removed, setup.case.requested()], done.said).toEqual([0, 2, []]);
    const proof = await setup.case.run('forget', '--proof', 'm1');
    expect([proof.code, proof.result]).toEqual([0, expect.stringContaining('2 rows removed')]);
  });

  it.each<[string, Answer, string, RegExp]>([
    ['a wrong token', (_, response) => code(response, '40201'), '40201', /does not accept the import token/],
    ['a bare 404 on the first ID', (_, response) => json(response, 'Not Found', 404), 'http_404', /--purge-only/],
  ])('purges all the same after %s, and sends no more requests', async (_, answer, stopped, message) => {
    await setup.case.load(ROWS, DUCKDB);
    setup.case.answer = answer;
    const done = await setup.case.erase('--file', setup.case.list('ids.txt', 'm1\nm2\n'), ...only(...DUCKDB));
    expect([done.exit, done.stopped_by, done.places[0].rows_removed]).toEqual([2, stopped, 3]);
    expect(done.error).toMatch(message);
    expect(done.error).toContain('Their rows have left the places.');
    expect(setup.case.requested()).toHaveLength(1);
    expect(setup.case.fixture.holding('marked-u-m2')).toEqual([]);
  });

  it('ends with the more severe of two failures, and tells both', async () => {
    await setup.case.load(ROWS, PLACES.slice(1, 2));
    const damaged = setup.case.at('lake/events/event_date=2026-01-16');
    mkdirSync(damaged);
    writeFileSync(`${damaged}/data.parquet`, 'damaged');
    setup.case.answer = (_, response) => code(response, '40201');
    const done = await setup.case.erase('--id', 'm1', ...only(...PLACES.slice(1, 2)));
    expect(done).toMatchObject({ exit: 2, error: expect.stringMatching(/import token.*may hold the people/) });
    expect(done.error).not.toContain('have left the places');
  });

  it('removes nothing if the guards no longer hold under the lock of the place', async () => {
    const lake = PLACES.slice(1, 2);
    const crowd = Array.from({ length: 11 }, (_, i) => event(`m1-${i}`, 1, { member: 'm1' }));
    await setup.case.load(crowd, lake);
    setup.case.copy('lake', 'crowd');
    await setup.case.load(ROWS, lake);
    const { hash } = await setup.case.plan('--id', 'm1', ...only(...lake));
    // Another run loads rows between the plan and the purge.
    const open = (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
      if (String(all[0]).endsWith('ledger.jsonl') && existsSync(setup.case.at('crowd'))) {
        setup.case.copy('crowd', 'lake');
        rmSync(setup.case.at('crowd'), { recursive: true });
      }
      return real(...all);
    };
    const execute = () => setup.case.plan('--id', 'm1', ...only(...lake), '--execute', '--confirm', hash);
    const done = await withCall(fs.promises, 'open', open, execute);
    expect([done.exit, done.places[0].rows_removed, setup.case.requested()], done.said).toEqual([5, null, []]);
  });

  it('needs a list that keeps people away, and says what is not remembered', async () => {
    await setup.case.load(ROWS, DUCKDB);
    setup.case.configure({ ledger_dir: undefined }, { suppression_file: undefined });
    const { code: exit, said } = await setup.case.run('forget', '--id', 'm1', ...only(...DUCKDB));
    expect([exit, said]).toEqual([2, expect.stringMatching(/needs a suppression list.*set erasure.ledger_dir/)]);
    setup.case.configure({ ledger_dir: undefined });
    const plan = await setup.case.plan('--id', 'm1', ...only(...DUCKDB));
    expect([plan.exit, plan.warnings]).toEqual([
      0,
      [expect.stringContaining('There is no ledger_dir: nothing is remembered')],
    ]);
  });
});

describe.each(PLACES)('a suppression list, once %s was purged with it', (words) => {
  const [target = '', path = ''] = words.split(' ');
  const sync = () => setup.case.run('sync', target, setup.case.at(path), '--full-refresh');

  it('must be given to each sync and each plan, whole', async () => {
    await setup.case.load(ROWS, [words]);
    await setup.case.erase('--id', 'm1', ...only(words));
    setup.case.copy('suppressed.jsonl', 'older.jsonl');
    expect((await setup.case.erase('--id', 'm2', ...only(words))).exit).toBe(0);
    expect((await sync()).code).toBe(0);
    for (const suppression_file of [undefined, 'older.jsonl', 'empty.jsonl']) {
      setup.case.list('empty.jsonl', '');
      setup.case.configure({}, { suppression_file });
      const refused = [await sync(), await setup.case.run('forget', '--id', 'm3', ...only(words))];
      for (const { code: exit, said } of refused) {
        expect([exit, said]).toEqual([2, expect.stringContaining('was purged with a suppression list of 2 entries')]);
      }
    }
    expect(setup.case.fixture.holding('marked-u-m1')).toEqual([]);
    setup.case.configure();
    expect((await setup.case.erase('--id', 'm3', ...only(words))).exit).toBe(0);
  });
});

describe('a plan', () => {
  it('covers by its hash the list, the places, the column and the limits, and not what the ledger knows', async () => {
    await setup.case.load(ROWS, PLACES.slice(0, 2));
    const base = ['--id', 'm1', ...only(...DUCKDB)];
    const { hash } = await setup.case.plan(...base);
    const others = [
      ['--id', 'm2', ...only(...DUCKDB)],
      ['--id', 'm1', ...only(...PLACES.slice(0, 2))],
      [...base, '--by-column', 'df_unified_id'],
      [...base, '--max-people', '9'],
      [...base, '--allow-shared'],
      [...base, '--again'],
      [...base, '--purge-only'],
    ];
    for (const words of others) {
      expect((await setup.case.plan(...words)).hash, words.join(' ')).not.toBe(hash);
      expect((await setup.case.plan(...words, '--execute', '--confirm', hash)).exit).toBe(2);
    }
    expect(setup.case.requested()).toEqual([]);
    await setup.case.plan(...base, '--execute', '--confirm', hash);
    expect((await setup.case.plan(...base)).hash).toBe(hash);
  });

  it('counts each person with other IDs once, over all places', async () => {
    const [duckdb, lake] = PLACES;
    await setup.case.load([...ROWS, event('m2', 2, { member: 'other' })], [duckdb]);
    await setup.case.load([...ROWS, event('m1', 3, { member: 'another' })], [lake]);
    const list = setup.case.list('ids.txt', 'm1\nm2\n');
    const plan = await setup.case.plan('--file', list, ...only(duckdb, lake));
    expect([plan.exit, plan.guard]).toEqual([5, expect.stringContaining('2 of these people have other IDs, too')]);
    expect(plan.places.map(({ shared }) => shared)).toEqual([1, 1]);
  });

  it('ends with 5 above max_deletions_per_sync; IDs that were rejected before do not count', async () => {
    await setup.case.load(ROWS, DUCKDB);
    setup.case.configure({ max_deletions_per_sync: 1 });
    setup.case.answer = (_, response) => code(response, '40000');
    expect((await setup.case.erase('--id', 'm1', ...only(...DUCKDB))).exit).toBe(0);
    const words = (ids: string) => ['--file', setup.case.list('ids.txt', ids), ...only(...DUCKDB)];
    expect((await setup.case.plan(...words('m1\nm2\n'))).exit).toBe(0);
    expect(await setup.case.plan(...words('m1\nm2\nm3\n'))).toMatchObject({ exit: 5, to_request: 3 });
  });

  it.each<[string, (words: string[]) => Promise<unknown> | unknown, RegExp]>([
    ['a column that no place has', (words) => words.push('--by-column', 'nobody'), /No place has a column nobody/],
    [
      'a place that is not there',
      (words) => words.push('--in', 'duckdb', setup.case.at('none.duckdb')),
      /none\.duckdb/,
    ],
    ['a place twice', (words) => words.push(...only(...DUCKDB)), /is named twice/],
    [
      'the data of another service',
      () => setup.case.configure({}, { service_id: 'another' }),
      /holds the data of another service/,
    ],
    [
      'a suppression list under another key',
      () => {
        setup.case.list('suppressed.jsonl', '{"v":1,"kind":"suppression","key_check":"0123456789abcdef"}\n');
      },
      /under another key/,
    ],
    [
      'a ledger that was changed',
      async () => {
        await setup.case.erase('--id', 'm3', ...only(...DUCKDB));
        const path = setup.case.at('ledger/ledger.jsonl');
        writeFileSync(path, readFileSync(path, 'utf8').replace('"ids":1', '"ids":2'));
      },
      /The ledger is broken/,
    ],
  ])('is refused for %s, as its execution would be', async (_, change, message) => {
    await setup.case.load(ROWS, DUCKDB);
    const words = ['--id', 'm1', ...only(...DUCKDB)];
    await change(words);
    setup.case.server.seen.length = 0;
    const { code: exit, said } = await setup.case.run('forget', ...words);
    expect([exit, said]).toEqual([expect.toSatisfy((one) => one === 1 || one === 2), expect.stringMatching(message)]);
    expect(setup.case.requested()).toEqual([]);
  });

  it.each<[string, readonly string[], RegExp]>([
    ['nobody', [], /exactly one of --id, --file/],
    ['two lists', ['--id', 'a', '--file', 'b'], /exactly one of --id, --file/],
    ['a proof to execute', ['--proof', 'a', '--execute', '--confirm', 'abc'], /--execute does not go with --proof\./],
    ['a confirmation without execution', ['--id', 'a', '--confirm', 'x'], /go together/],
    ['a head without a ledger', ['--id', 'a', '--head', 'x'], /--head does not go with --id\./],
    [
      'a mapping for the suppression list',
      ['--suppressed', '--mapping', 'm'],
      /--mapping does not go with --suppressed/,
    ],
    [
      'a reason that is too long',
      ['--id', 'a', '--reason', 'x'.repeat(4_001)],
      /--reason is not usable: wanted a text of at most 4000 characters/,
    ],
  ])('is refused for %s', async (_, words, message) => {
    expect(await setup.case.run('forget', ...words)).toMatchObject({ code: 2, said: expect.stringMatching(message) });
  });

  it('finds people by a mapping, and keeps away those who have no row yet', async () => {
    await setup.case.load(ROWS, DUCKDB);
    setup.case.configure({ by_column: undefined });
    const mapping = setup.case.list('mapping.csv', 'external_id,df_unified_id\nx,marked-u-m1\nx,marked-u-late\n');
    const done = await setup.case.erase('--id', 'x', '--mapping', mapping, ...only(...DUCKDB));
    expect([done.exit, done.places[0].rows_removed, setup.case.requested()], done.said).toEqual([0, 2, ['x']]);
    const [synced] = await setup.case.load([...ROWS, event('late')], DUCKDB);
    expect(JSON.parse(synced.result)).toMatchObject({ suppressed_rows: 3 });
  });
});

describe('person', () => {
  it('prints every row with its place, and notes each ID in the ledger', async () => {
    await setup.case.load(ROWS, DUCKDB);
    const shown = await setup.case.run('person', '--id', 'm1', ...only(...DUCKDB));
    expect(shown.code, shown.said).toBe(0);
    const rows = shown.result.split('\n').map((line) => JSON.parse(line));
    expect(rows.map(({ row }) => row.member)).toEqual(['m1', 'm1']);
    expect(rows[0].place).toMatch(/^duckdb .*events\.duckdb$/);
    const proof = await setup.case.run('forget', '--proof', 'm1');
    expect(proof.result).toContain('2 rows of the person were shown');
    const page = setup.case.at('proof.html');
    expect((await setup.case.run('forget', '--proof', 'm1', '-o', page)).code).toBe(0);
    expectMode(page, 0o600);
  });

  it('refuses to replace a file, and leaves none after a failure', async () => {
    await setup.case.load(ROWS, DUCKDB);
    const out = setup.case.list('rows.jsonl', 'mine');
    expect((await setup.case.run('person', '--id', 'm1', '-o', out, ...only(...DUCKDB))).code).toBe(2);
    expect(readFileSync(out, 'utf8')).toBe('mine');
    const other = setup.case.at('other.jsonl');
    expect(
      (await setup.case.run('person', '--id', 'm1', '-o', other, '--by-column', 'no', ...only(...DUCKDB))).code,
    ).toBe(2);
    expect(existsSync(other)).toBe(false);
  });
});
