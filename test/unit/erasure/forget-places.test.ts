import fs, { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type Answer, code, json, SUCCESS } from '../../support/erasure/deletions.ts';
import { DUCKDB, event, LAKE, PLACES, setUpErasure } from '../../support/erasure/fixture.ts';
import { expectMode } from '../../support/modes.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { withCall } from '../../support/system-calls.ts';
import { until } from '../../support/wait.ts';

const erasure = setUpErasure();
const { at, configure, copy, erase, holding, load, only, planOf, proofOf, requestedIds, run, runAt, writeList } =
  erasure;
const ROWS = [event('m1'), event('m1', 2), event('m2'), event('m3')];

describe('an erasure', () => {
  it.each<[string, Answer, number]>([
    ['a 404 without a code', (_, response) => json(response, 'Not Found', 404), 0],
    ['502', (_, response) => json(response, 'Bad gateway', 502), 3],
  ])('removes everybody from the places although the service answers an unknown ID by %s', async (_, unknown, exit) => {
    await load(ROWS, DUCKDB);
    erasure.answer = (deletion, response, nth) =>
      deletion.id === 'm1' ? json(response, SUCCESS) : unknown(deletion, response, nth);
    const list = writeList('ids.txt', 'm1\nm2\n');
    const words = ['--file', list, ...only(DUCKDB)];
    const done = await erase(...words);
    expect([done.exit, done.places[0].rows_removed], done.said).toEqual([exit, 3]);
    expect(holding('marked-u-m2')).toEqual([]);
    if (exit === 0) return;
    expect(done.error).toContain('1 of 2 IDs are deleted at the service. Undecided: 1');
    erasure.clock().pass(3 * 86_400_000);
    erasure.answer = (_deletion, response) => json(response, SUCCESS);
    erasure.forgetRequests();
    const monday = await planOf(...words, '--execute', '--confirm', done.hash);
    expect([monday.exit, requestedIds()], monday.said).toEqual([0, ['m2']]);
  });

  it('names by its row an ID that a place holds with another spelling, and how it differs', async () => {
    await load([...ROWS, event('김'), event('m4\v'), event('8210-1234')], DUCKDB);
    for (const [difference, id] of [
      ['blanks, hyphens or other signs', 'm1 '],
      ['blanks, hyphens or other signs', '\u00a0m1'],
      ['blanks, hyphens or other signs', 'm4'],
      ['capitals', 'M1'],
      ['blanks, hyphens or other signs', '+82\u200b 10\u20111234'],
      ['leading zeros', '00m1'],
      ['blanks, hyphens or other signs and capitals', ' M1'],
      ['its Unicode form', '김'.normalize('NFD')],
    ]) {
      const plan = await planOf('--id', id, ...only(DUCKDB));
      const said = plan.warnings.join(' ');
      expect(said).toContain('Row 1: this ID was found in no way');
      expect(said).toContain(`Row 1: there is an ID that differs only in ${difference}`);
      expect(said).not.toMatch(/m1|m4|김/i);
      expect(plan.places[0]).toMatchObject({ rows: 0, ids_without_rows: 1, row_numbers: [1] });
    }
  });

  it('requests nobody again whom the ledger knows as deleted, unless asked to', async () => {
    await load(ROWS, DUCKDB);
    writeList('ids.txt', 'm1\n');
    const words = ['--file', at('ids.txt'), ...only(DUCKDB)];
    await erase(...words);
    // Another officer, in another folder, with another list and the same ledger.
    const others = { suppression_file: '../suppressed.jsonl' };
    const config = configure({ ledger_dir: '../ledger' }, others, 'b/dfinery.json');
    writeList('ids.txt', 'm1\nm2\n');
    const second = await erase(...words, '--config', config);
    expect(second).toMatchObject({ exit: 0, done_before: 1, done: 1 });
    const sentence = /^1 ID was deleted at the service before \(2026-01-2\d\), and will not be requested again/;
    expect(second.warnings[0]).toMatch(sentence);
    expect(requestedIds()).toEqual(['m1', 'm2']);
    expect((await proofOf('m1'))[0]).toBe(0);
    expect((await erase(...words, '--again')).done).toBe(2);
    expect(requestedIds()).toEqual(['m1', 'm2', 'm1', 'm2']);
    // A kill between the last purge and its requests leaves a confirmed ID open.
    const ledger = readFileSync(at('ledger/ledger.jsonl'), 'utf8');
    const end = ledger.indexOf('\n', ledger.lastIndexOf('"purged"')) + 1;
    writeList('ledger/ledger.jsonl', ledger.slice(0, end));
    expect(await proofOf('m1')).toEqual([
      3,
      expect.stringMatching(/open: confirmed .*, then purged and not asked again/),
    ]);
  });

  it('purges alone, without a request and without a token', async () => {
    await load(ROWS, DUCKDB);
    erasure.env = { DFINERY_SUPPRESSION_KEY: erasure.env.DFINERY_SUPPRESSION_KEY };
    const done = await erase('--id', 'm1', '--purge-only', ...only(DUCKDB));
    expect([done.exit, done.places[0].rows_removed, requestedIds()], done.said).toEqual([0, 2, []]);
    expect(await proofOf('m1')).toEqual([0, expect.stringMatching(/2 rows removed\n.*the service was not asked/)]);
    configure({}, { base_url: 'http://127.0.0.1:1' });
    const { warnings } = await planOf('--id', 'm1', '--purge-only', ...only(DUCKDB));
    expect(warnings.join(' ')).toContain('those deletions do not count here');
  });

  it.each<[string, Answer, string, RegExp]>([
    ['a wrong token', (_, response) => code(response, '40201'), '40201', /does not accept the import token/],
    ['a bare 404 on the first ID', (_, response) => json(response, 'Not Found', 404), 'http_404', /--purge-only/],
  ])('purges all the same after %s, and sends no more requests', async (_, answer, stopped, message) => {
    await load(ROWS, DUCKDB);
    erasure.answer = answer;
    const done = await erase('--file', writeList('ids.txt', 'm1\nm2\n'), ...only(DUCKDB));
    expect([done.exit, done.stopped_by, done.places[0].rows_removed]).toEqual([2, stopped, 3]);
    expect(done.error).toMatch(message);
    expect(requestedIds()).toEqual(['m1']);
    expect(holding('marked-u-m2')).toEqual([]);
  });

  it('ends with the more severe of two failures, and tells both', async () => {
    await load(ROWS, LAKE);
    mkdirSync(at('lake/events/event_date=2026-01-16'));
    writeList('lake/events/event_date=2026-01-16/data.parquet', 'damaged');
    erasure.answer = (_, response) => code(response, '40201');
    const done = await erase('--id', 'm1', ...only(LAKE));
    expect(done).toMatchObject({ exit: 2, error: expect.stringMatching(/import token.*People may still be there/) });
  });

  /** Plans and executes; another run replaces the place between the plan and the purge. */
  async function eraseAfterPlan(words: readonly string[], replace: () => void) {
    const { hash } = await planOf(...words);
    let isReplaced = false;
    const open = (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
      if (!isReplaced && String(all[0]).endsWith('ledger.jsonl')) {
        isReplaced = true;
        replace();
      }
      return real(...all);
    };
    return await withCall(fs.promises, 'open', open, () => planOf(...words, '--execute', '--confirm', hash));
  }

  it('removes nothing from a place under whose lock the guards no longer hold for all places together', async () => {
    const crowd = Array.from({ length: 12 }, (_, i) => event(`m1-${i}`, 1, { member: 'm1' }));
    await load(crowd.slice(0, 6), DUCKDB);
    await load(crowd.slice(6), LAKE);
    for (const name of ['lake', 'events.duckdb']) copy(name, `crowd/${name}`);
    await load(ROWS, DUCKDB, LAKE);
    const done = await eraseAfterPlan(['--id', 'm1', ...only(DUCKDB, LAKE)], () => {
      for (const name of ['lake', 'events.duckdb']) copy(`crowd/${name}`, name);
    });
    expect(done, done.said).toMatchObject({ exit: 5, places: [{ rows_removed: 6 }, { rows_removed: null }] });
    expect(requestedIds()).toEqual([]);
    const sentence = /lake: 0 rows found by ID and removed. A purge there was not finished/;
    expect(await proofOf('m1')).toEqual([3, expect.stringMatching(sentence)]);
  });

  it('counts no ID as undecided that the service rejected before, also if a place is not purged', async () => {
    await load(
      Array.from({ length: 12 }, (_, i) => event(`m1-${i}`, 1, { member: 'm1' })),
      DUCKDB,
    );
    copy('events.duckdb', 'crowd.duckdb');
    await load(ROWS, DUCKDB);
    let requestCount = 0;
    // The answer to the first request is lost: it may have deleted the person.
    erasure.answer = (_, response) => (++requestCount === 1 ? response.destroy() : code(response, '40402'));
    const words = ['--id', 'm1', ...only(DUCKDB)];
    expect(await erase(...words)).toMatchObject({ exit: 0, to_request: 1, rejected: 1, undecided: 0 });
    expect(await erase(...words)).toMatchObject({ exit: 0, to_request: 0, rejected: 1, undecided: 0 });
    // It is looked for again, since it has not left the other place.
    await load(ROWS, LAKE);
    const both = ['--id', 'm1', ...only(DUCKDB, LAKE)];
    const failed = await eraseAfterPlan(both, () => copy('crowd.duckdb', 'events.duckdb'));
    expect(failed, failed.said).toMatchObject({ exit: 5, to_request: 0, undecided: 0 });
    expect(requestedIds()).toEqual(['m1', 'm1']);
  });

  it('removes nothing from a place that was purged with more people on the list after the plan', async () => {
    await load(ROWS, DUCKDB);
    copy('events.duckdb', 'loaded.duckdb');
    await erase('--file', writeList('ids.txt', 'm1\nm2\n'), ...only(DUCKDB));
    copy('events.duckdb', 'purged.duckdb');
    copy('loaded.duckdb', 'events.duckdb');
    writeList('suppressed.jsonl', '');
    const done = await eraseAfterPlan(['--id', 'm3', ...only(DUCKDB)], () => copy('purged.duckdb', 'events.duckdb'));
    expect(done, done.said).toMatchObject({ exit: 2, places: [{ rows_removed: null }] });
    expect(done.error).toContain('knew 2 lines of the suppression list, and the list has 1');
  });

  it('warns of rows that name nobody: they leave, a sync may bring them back, and who came back stays', async () => {
    const nameless = { df_unified_id: '' };
    await load([...ROWS, event('m1', 3, nameless), event('m4', 1, nameless)], DUCKDB);
    const words = ['--file', writeList('ids.txt', 'm1\nm4\n'), ...only(DUCKDB)];
    const { exit, places, warnings } = await erase(...words);
    const sentence = '2 rows of these IDs name no person, and a suppression list cannot keep such rows away.';
    expect([exit, places[0].rows_removed, warnings]).toEqual([0, 4, [expect.stringContaining(sentence)]]);
    await load([...ROWS, event('m4')], DUCKDB);
    const again = await erase(...words);
    expect([again.exit, again.places[0].rows_removed], again.said).toEqual([0, 0]);
    expect(again.warnings.join()).toContain('2 of these IDs have left all places');
    expect(holding('marked-u-m4')).toEqual([at('events.duckdb')]);
  });

  it.each([
    ['a list that keeps people away', { suppression_file: undefined }],
    ['a ledger that proves it', {}],
  ])('needs %s', async (_, keys) => {
    await load(ROWS, DUCKDB);
    configure({ ledger_dir: undefined }, keys);
    const { code: exit, said } = await run('forget', '--id', 'm1', ...only(DUCKDB));
    expect([exit, said]).toEqual([2, expect.stringMatching(/needs a suppression list.*set erasure.ledger_dir/)]);
  });
});

it.each(PLACES)(
  'a suppression list with which %s was purged must be given to each sync, load and plan, whole',
  async (place) => {
    const sync = (...more: string[]) => runAt('sync', place, '--full-refresh', ...more);
    await load(ROWS, place);
    await erase('--id', 'm1', ...only(place));
    copy('suppressed.jsonl', 'older.jsonl');
    expect((await erase('--id', 'm2', ...only(place))).exit).toBe(0);
    expect((await sync()).code).toBe(0);
    for (const suppression_file of [undefined, 'older.jsonl', 'empty.jsonl']) {
      writeList('empty.jsonl', '');
      configure({}, { suppression_file });
      const said = expect.stringContaining('knew 2 lines of the suppression list');
      for (const more of [[], ['--dry-run']]) expect(await sync(...more)).toMatchObject({ code: 2, said });
      expect(await runAt('load', place, at('day.csv'), '--day', '2026-01-01')).toMatchObject({ code: 2, said });
      expect(await run('forget', '--id', 'm3', ...only(place))).toMatchObject({ code: 2, said });
    }
    expect(holding('marked-u-m1')).toEqual([]);
    configure();
    expect((await erase('--id', 'm3', ...only(place))).exit).toBe(0);
  },
);

describe('a plan', () => {
  it('covers by its hash the list, the places, the column and the limits, and not what the ledger knows', async () => {
    await load(ROWS, DUCKDB, LAKE);
    const base = ['--id', 'm1', ...only(DUCKDB)];
    const { hash } = await planOf(...base);
    const others = [
      ['--id', 'm2', ...only(DUCKDB)],
      ['--id', 'm1', ...only(DUCKDB, LAKE)],
      [...base, '--by-column', 'df_unified_id'],
      [...base, '--max-people', '9'],
      [...base, '--allow-shared'],
      [...base, '--again'],
      [...base, '--purge-only'],
    ];
    for (const words of others) {
      expect((await planOf(...words)).hash, words.join(' ')).not.toBe(hash);
      expect((await planOf(...words, '--execute', '--confirm', hash)).exit).toBe(2);
    }
    for (const setting of [{ max_deletions_per_sync: 9 }, { profiles: true }]) {
      configure(setting);
      expect((await planOf(...base, '--execute', '--confirm', hash)).exit, JSON.stringify(setting)).toBe(2);
    }
    configure();
    expect(requestedIds()).toEqual([]);
    await planOf(...base, '--execute', '--confirm', hash);
    expect((await planOf(...base)).hash).toBe(hash);
    const suppressed = ['--suppressed', ...only(DUCKDB)];
    expect((await planOf(...suppressed, '--new-list')).hash).not.toBe((await planOf(...suppressed)).hash);
  });

  it('of an empty list deletes nobody, and looks into no place', async () => {
    await load(ROWS, DUCKDB);
    const { exit, warnings } = await planOf('--file', writeList('ids.txt', '\n'), ...only(DUCKDB));
    expect([exit, warnings]).toEqual([0, ['The list is empty: nobody is deleted.']]);
  });

  it('of a list without a usable row says so once', async () => {
    const { exit, warnings, error } = await planOf('--file', writeList('ids.txt', 'null\nnull\n'), ...only(DUCKDB));
    expect([exit, warnings]).toEqual([2, []]);
    expect(error).toMatch(/^Nothing was deleted\. 2 of 2 rows are refused\. Rows 1, 2: the ID is a placeholder/);
  });

  it('counts each person with other IDs once, over all places', async () => {
    await load([...ROWS, event('m2', 2, { member: 'other' })], DUCKDB);
    await load([...ROWS, event('m1', 3, { member: 'another' })], LAKE);
    const plan = await planOf('--file', writeList('ids.txt', 'm1\nm2\n'), ...only(DUCKDB, LAKE));
    expect([plan.exit, plan.guard]).toEqual([5, expect.stringContaining('2 of these people have other IDs, too')]);
    expect(plan.places.map(({ shared }) => shared)).toEqual([1, 1]);
  });

  it('ends with 5 above max_deletions_per_sync; IDs that were rejected before do not count', async () => {
    await load(ROWS, DUCKDB);
    configure({ max_deletions_per_sync: 1 });
    erasure.answer = (_, response) => code(response, '40000');
    expect((await erase('--id', 'm1', ...only(DUCKDB))).exit).toBe(0);
    const words = (ids: string) => ['--file', writeList('ids.txt', ids), ...only(DUCKDB)];
    expect((await planOf(...words('m1\nm2\n'))).exit).toBe(0);
    expect(await planOf(...words('m1\nm2\nm3\n'))).toMatchObject({ exit: 5, to_request: 3 });
  });

  it.each<[string, (words: string[]) => unknown, RegExp]>([
    ['a column that no place has', (words) => words.push('--by-column', 'nobody'), /No place has a column nobody/],
    ['a place that is not there', (words) => words.push('--in', 'duckdb', at('none.duckdb')), /none\.duckdb/],
    ['the data of another service', () => configure({}, { service_id: 'another' }), /the data of another service/],
    [
      'a suppression list under another key',
      () => writeList('suppressed.jsonl', '{"v":1,"kind":"suppression","key_check":"0123456789abcdef"}\n'),
      /under another key/,
    ],
  ])('is refused for %s, as its execution would be', async (_, change, message) => {
    await load(ROWS, DUCKDB);
    const words = ['--id', 'm1', ...only(DUCKDB)];
    change(words);
    expect(await run('forget', ...words)).toMatchObject({ code: 2, said: expect.stringMatching(message) });
    expect(requestedIds()).toEqual([]);
  });

  it.each<[string, readonly string[], RegExp]>([
    ['nobody', [], /exactly one of --id, --file/],
    ['two lists', ['--id', 'a', '--file', 'b'], /exactly one of --id, --file/],
    ['a proof to execute', ['--proof', 'a', '--execute', '--confirm', 'abc'], /--execute does not go with --proof\./],
    ['a head without a ledger', ['--id', 'a', '--head', 'x'], /--head does not go with --id\./],
    ['a mapping without IDs', ['--suppressed', '--mapping', 'm'], /--mapping does not go with --suppressed/],
  ])('is refused for %s', async (_, words, message) => {
    expect(await run('forget', ...words)).toMatchObject({ code: 2, said: expect.stringMatching(message) });
  });

  it('finds people by a column that stands in _rescued alone, beside an ID that is nowhere', async () => {
    const { member: _, ...withoutMember } = event('m1');
    await load([withoutMember], DUCKDB);
    configure({}, { schema_mode: 'freeze' });
    await load(ROWS, DUCKDB);
    const done = await erase('--file', writeList('ids.txt', 'm1\nm9\n'), ...only(DUCKDB));
    expect([done.exit, done.places[0].rows_removed], done.said).toEqual([0, 2]);
    expect(done.warnings[0]).toContain(
      'has no column member: people are found there in the other ways and in _rescued',
    );
  });

  it('finds people by a mapping, and keeps away those who have no row yet', async () => {
    await load(ROWS, DUCKDB);
    configure({ by_column: undefined });
    const mapping = writeList('mapping.csv', 'external_id,df_unified_id\nx,marked-u-m1\nx,marked-u-late\n');
    const done = await erase('--id', 'x', '--mapping', mapping, ...only(DUCKDB));
    expect([done.exit, done.places[0].rows_removed, requestedIds()], done.said).toEqual([0, 2, ['x']]);
    // An ID that is not looked for again counts in the consent all the same.
    expect((await planOf('--id', 'x', '--mapping', mapping, ...only(DUCKDB))).hash).toBe(done.hash);
    const [synced] = await load([...ROWS, event('late')], DUCKDB);
    expect(JSON.parse(synced.result)).toMatchObject({ suppressed_rows: 3 });
  });
});

describe('a proof', () => {
  it.each<[string, readonly string[], RegExp]>([
    ['a placeholder', ['--proof', 'null'], /Nothing is proved. 1 of 1 row is refused. Row 1: the ID is a placeholder/],
    ['a blank', ['--proof', ' '], /Nothing is proved. 1 of 1 row is refused. Row 1: the ID is missing/],
    ['a list without an ID', ['--proof-file', 'empty.txt'], /Nothing is proved. The list is empty\./],
  ])('is refused for %s, and writes no page', async (_, [option = '', value = ''], message) => {
    const page = at('proof.html');
    const words = [option, option === '--proof' ? value : writeList(value, ''), '-o', page];
    expect(await run('forget', ...words)).toMatchObject({ code: 2, said: expect.stringMatching(message) });
    expect(existsSync(page)).toBe(false);
  });

  it('says once how many rows of a list were refused, in JSON, text and page', async () => {
    await load(ROWS, DUCKDB);
    await erase('--id', 'm1', ...only(DUCKDB));
    const list = writeList('list.csv', 'id,n\nm1,1\nnull,2\n,3\n#REF!,4\n');
    const words = ['forget', '--proof-file', list, '--column', 'id'];
    const sentence =
      /3 of 4 rows are refused. Row 4: the ID is missing.* Rows 3, 5: the ID is a placeholder.*says nothing of them\./;
    const text = await run(...words);
    expect([text.code, text.result, text.said]).toEqual([0, expect.stringMatching(sentence), '']);
    const { result } = await run(...words, '--json');
    expect(JSON.parse(result).summary).toMatchObject({
      ids: 1,
      received: 4,
      refused_rows: { missing: [4], placeholder: [3, 5] },
    });
    await run(...words, '-o', at('proof.html'));
    expect(readFileSync(at('proof.html'), 'utf8')).toMatch(sentence);
  });
});

describe('person', () => {
  it('prints every row with its place, and notes each ID in the ledger', async () => {
    await load(ROWS, DUCKDB);
    const shown = await run('person', '--id', 'm1', ...only(DUCKDB));
    expect(shown.code, shown.said).toBe(0);
    const rows = shown.result.split('\n').map((line) => JSON.parse(line));
    expect(rows.map(({ row }) => row.member)).toEqual(['m1', 'm1']);
    expect(rows[0].place).toMatch(/^duckdb .*events\.duckdb$/);
    expect((await proofOf('m1'))[1]).toContain('2 rows of the person were shown');
    const page = at('proof.html');
    expect((await run('forget', '--proof', 'm1', '-o', page)).code).toBe(0);
    expectMode(page, 0o600);
  });

  it('holds a row back until the reader has taken those before', async () => {
    await load(ROWS, DUCKDB);
    const takes: (() => void)[] = [];
    const waitForResultReader = () => new Promise<void>((resolve) => takes.push(resolve));
    const words = ['person', '--id', 'm1', ...only(DUCKDB), '--config', at('dfinery.json')];
    const done = runHere(words, { env: erasure.env, waitForResultReader });
    for (const rows of [1, 2]) {
      await until(() => takes.length > 0);
      await setImmediate();
      expect(takes, `after ${rows}`).toHaveLength(1);
      takes.pop()?.();
    }
    expect((await done).stdout.trim().split('\n')).toHaveLength(2);
  });

  it('does not wait for the reader once it is stopped, and leaves no rows on the disk', async () => {
    await load(ROWS, LAKE);
    const stop = new AbortController();
    let hasTaken = false;
    const waitForResultReader = async () => {
      stop.abort(new Error('stopped'));
      await setTimeout(1_000);
      hasTaken = true;
    };
    const words = ['person', '--id', 'm1', ...only(LAKE), '--config', at('dfinery.json')];
    const { code, stderr } = await runHere(words, { env: erasure.env, waitForResultReader, signal: stop.signal });
    expect([code, hasTaken], stderr).toEqual([3, false]);
    expect(readdirSync(at('spool'))).toEqual([]);
  });

  it('prints nothing of a place with the data of another service, where the ID may be another person', async () => {
    await load(ROWS, DUCKDB);
    configure({}, { service_id: 'another' });
    const { code, result, said } = await run('person', '--id', 'm1', ...only(DUCKDB));
    expect([code, result, said]).toEqual([2, '', expect.stringContaining('holds the data of another service')]);
    expect(existsSync(at('ledger/ledger.jsonl'))).toBe(false);
  });

  it('writes a new file alone, and leaves none after a failure', async () => {
    await load(ROWS, DUCKDB);
    const out = writeList('rows.jsonl', 'mine');
    const words = ['--id', 'm1', ...only(DUCKDB), '-o'];
    expect((await run('person', ...words, out)).code).toBe(2);
    expect(readFileSync(out, 'utf8')).toBe('mine');
    const other = at('other.jsonl');
    expect((await run('person', ...words, other, '--by-column', 'no')).code).toBe(2);
    expect(existsSync(other)).toBe(false);
    expect((await run('person', ...words, other)).code).toBe(0);
    expect(readFileSync(other, 'utf8').trim().split('\n')).toHaveLength(2);
  });
});
