import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secrets.ts';
import { fileName, ledgerFiles } from '../../../src/erasure/ledger/file.ts';
import { LedgerKey } from '../../../src/erasure/ledger/key.ts';
import { GENESIS, type LedgerLine, signLine } from '../../../src/erasure/ledger/line.ts';
import { countLedger, type VerifyOptions, verifyLedger } from '../../../src/erasure/ledger/verify.ts';
import { answerOf, done, names, setUpPlans } from '../../support/deletion/plans.ts';

const setup = setUpPlans();
const SECRET = new Secret('k'.repeat(32));
const folder = () => setup.plans.folders.ledger;
const pathOf = (n: number) => join(folder(), setup.plans.folders.ledgerFiles()[n]);
const verify = (options?: VerifyOptions, path = folder()) => verifyLedger(path, undefined, options);

/** Runs that each delete one list, under a key of their own. */
async function runs(...lists: (readonly string[])[]): Promise<string[]> {
  const heads: string[] = [];
  for (const ids of lists) heads.push((await setup.plans.execute(ids, done)).report.head ?? '');
  return heads;
}

const common = { v: 1, run: 'r1', at: '2026-01-02T03:04:05.000Z' } as const;
const open = { ...common, kind: 'open', base_url: 'u', service_id: 's', list: 'l', ids: 1 } as const;
const before = { ...common, kind: 'before', id: 'a'.repeat(64), attempt: 1 } as const;
const close = { ...common, kind: 'close', counts: {} } as const;

/** A file whose every line has a valid code and follows the one before it. */
async function signed(...lines: object[]) {
  const key = new LedgerKey(SECRET);
  let prev = GENESIS;
  mkdirSync(folder(), { recursive: true });
  const text = lines.map((line) => {
    const signed = signLine({ ...line, key_check: key.check } as LedgerLine, prev, key);
    prev = signed.mac;
    return `${signed.text}\n`;
  });
  writeFileSync(join(folder(), fileName(1, 'r1')), text.join(''));
  return verifyLedger(folder(), SECRET);
}

describe('the verification of a ledger', () => {
  it('lists each file, each line if requested, and the head', async () => {
    const heads = await runs(['a'], ['b', 'c']);
    const seen: unknown[] = [];
    const verdict = await verify({ see: ({ kind }, file, number) => seen.push([file, number, kind]) });
    const [first, second] = setup.plans.folders.ledgerFiles();
    expect(verdict).toMatchObject({
      ok: true,
      problems: [],
      notes: [],
      head: heads[1],
      files: [
        { file: first, lines: 4, closed: true, torn_bytes: 0 },
        { file: second, lines: 6, closed: true, torn_bytes: 0 },
      ],
    });
    expect(verdict.files.map(({ run }) => first.includes(run) || second.includes(run))).toEqual([true, true]);
    expect(seen.slice(0, 5)).toEqual([
      [first, 1, 'open'],
      [first, 2, 'before'],
      [first, 3, 'after'],
      [first, 4, 'close'],
      [second, 1, 'open'],
    ]);
  });

  it('finds a head that was kept elsewhere, in any spelling, and counts the lines after it', async () => {
    const [first, second] = await runs(['a'], ['b']);
    expect(await verify({ head: ` ${second.toUpperCase()}\n` })).toMatchObject({ ok: true, notes: [] });
    expect(await verify({ head: first })).toMatchObject({
      ok: true,
      notes: [expect.stringContaining('Lines were added after the head given')],
    });
    const gone = await verify({ head: 'f'.repeat(64) });
    expect(gone).toMatchObject({ ok: false, notes: [], problems: [expect.stringContaining('code of no line')] });
  });

  it('covers the files up to the given one', async () => {
    const heads = await runs(['a'], ['b'], ['c']);
    const last = pathOf(2);
    appendFileSync(last, 'x\n');
    expect(await verify()).toMatchObject({ ok: false });
    expect(await verify({}, pathOf(1))).toMatchObject({ ok: true, files: [{}, {}], head: heads[1] });
    appendFileSync(pathOf(0), 'x\n');
    expect(await verify({}, pathOf(1))).toMatchObject({ ok: false });
  });

  it('takes a file of another name as the first of a ledger', async () => {
    await runs(['a'], ['b']);
    const copies = ['one', 'two'].map((name) => join(folder(), `${name}.jsonl`));
    for (const [n, copy] of copies.entries()) cpSync(pathOf(n === 0 ? 0 : 1), copy);
    renameSync(join(folder(), 'two.jsonl'), join(folder(), 'two.txt'));
    expect(await verify({}, join(folder(), 'one.jsonl'))).toMatchObject({
      ok: true,
      files: [{ file: 'one.jsonl', run: '' }],
    });
    const second = await verify({}, join(folder(), 'two.txt'));
    expect(second).toMatchObject({
      ok: false,
      problems: [expect.stringContaining('two.txt, line 1: does not follow')],
    });
  });

  it('requires a ledger and its key', async () => {
    await expect(verify()).rejects.toThrow('There is no ledger at');
    mkdirSync(folder());
    await expect(verify()).rejects.toThrow('has no key beside it');
    const empty = await verifyLedger(folder(), SECRET);
    expect(empty).toMatchObject({ ok: false, head: null, problems: ['There is no file of a ledger here.'] });
  });

  it('lists a file under the name of another run, and each of its lines', async () => {
    await runs(['a']);
    const [name] = setup.plans.folders.ledgerFiles();
    renameSync(pathOf(0), join(folder(), name.replace(/[0-9a-f]{16}/, '0'.repeat(16))));
    const { ok, problems } = await verify();
    expect(ok).toBe(false);
    expect(problems).toHaveLength(4);
    expect(problems[2]).toMatch(/line 3: is of the run [0-9a-f]{16}\.$/);
  });

  it('names missing files between two others', async () => {
    await runs(['a'], ['b'], ['c'], ['d']);
    rmSync(pathOf(1));
    rmSync(pathOf(1));
    expect(await verify()).toMatchObject({
      ok: false,
      problems: [expect.stringContaining('the files between number 1 and 4 are missing')],
    });
  });

  it('accepts a run that ended before its first line', async () => {
    const [first] = await runs(['a']);
    writeFileSync(join(folder(), fileName(2, '00')), '{"v":1,"ki');
    const [third] = await runs(['b']);
    const prevs: string[] = [];
    const see = (line: { kind: string; prev: string }) => line.kind === 'open' && prevs.push(line.prev);
    expect(await verify({ see })).toMatchObject({
      ok: true,
      head: third,
      notes: [expect.stringContaining('000002-00.jsonl holds no whole line')],
      files: [{ closed: true }, { lines: 0, closed: false, torn_bytes: 10 }, { closed: true }],
    });
    expect(prevs[1]).toBe(first);
    expect(await countLedger(folder(), undefined)).toMatchObject({ problems: [], runs: [{ done: 1 }, { done: 1 }] });
  });

  it('lists no line after a broken one', async () => {
    await runs(['a', 'b']);
    const lines = readFileSync(pathOf(0), 'utf8').split('\n');
    writeFileSync(pathOf(0), lines.toSpliced(2, 1).join('\n'));
    const seen: number[] = [];
    const { ok, files } = await verify({ see: (_line, _file, number) => seen.push(number) });
    expect({ ok, seen, lines: files[0].lines }).toEqual({ ok: false, seen: [1, 2], lines: 2 });
  });

  it('calls only a last line without its end truncated', async () => {
    await runs(['a']);
    const last = setup.plans.folders.ledgerLines().at(-1);
    truncateSync(pathOf(0), JSON.stringify(last).length * 2);
    const torn = await verify();
    expect(torn.ok).toBe(true);
    expect(torn.files[0].torn_bytes).toBeGreaterThan(0);
    appendFileSync(pathOf(0), '\n');
    expect(await verify()).toMatchObject({ ok: false, files: [{ torn_bytes: 0 }] });
  });

  it.each<[string, object[], string | undefined]>([
    ['nothing wrong', [open, before, close], undefined],
    ['a first line that opens no run', [before, close], 'line 1: is not allowed at this place'],
    ['a run opened twice', [open, before, open], 'line 3: is not allowed at this place'],
    ['a line after the closing one', [open, close, before], 'line 3: comes after the closing line'],
    ['a kind that is unknown', [open, { ...before, kind: 'pause' }], 'line 2: was written by a later version'],
    ['a version that is unknown', [open, { ...before, v: 2 }, close], 'line 2: was written by a later version'],
    ['no version', [open, { ...before, v: undefined }], 'line 2: was written by a later version'],
  ])('finds, in lines with valid codes, %s', async (_name, lines, problem) => {
    const verdict = await signed(...lines);
    expect(verdict.ok).toBe(problem === undefined);
    if (problem !== undefined) expect(verdict.problems[0]).toContain(problem);
  });
});

describe('the files of a ledger', () => {
  it('are the files of its naming pattern, ordered by number, also beyond six digits', () => {
    mkdirSync(folder());
    const others = [
      'xledger-000001-a.jsonl',
      'ledger-000001-a.jsonl.bak',
      'ledger-00001-a.jsonl',
      'ledger-000001-.jsonl',
    ];
    const mine = [fileName(999_999, 'b'), fileName(1_000_000, 'A9'), fileName(2, 'c')];
    for (const name of ['folder', 'ledger-1-a.jsonl']) mkdirSync(join(folder(), name));
    for (const name of [...others, ...mine]) writeFileSync(join(folder(), name), '');
    expect(ledgerFiles(folder()).map(({ name, number, run }) => [name, number, run])).toEqual([
      ['ledger-000002-c.jsonl', 2, 'c'],
      ['ledger-999999-b.jsonl', 999_999, 'b'],
      ['ledger-1000000-A9.jsonl', 1_000_000, 'A9'],
    ]);
  });
});

describe('the counts of a ledger', () => {
  it('have no run that only showed people', async () => {
    const access = { ...common, kind: 'access', id: 'a'.repeat(64), places: ['duckdb x'] } as const;
    expect((await signed(open, access, close)).ok).toBe(true);
    expect(await countLedger(folder(), SECRET)).toEqual({ runs: [], problems: [] });
  });

  it('are those of the last answer for each id, by run', async () => {
    const { plans } = setup;
    await plans.execute(['a', 'b', 'c', 'd'], (id, nth) => {
      if (id === 'b') return answerOf('rejected', '40001');
      if (id === 'c') return answerOf('undecided', '40402');
      return id === 'd' && nth === 1 ? answerOf('retry', '50000') : done();
    });
    await plans.execute(['a', 'e'], (id) => (id === 'e' ? answerOf('stop', '40201') : done()));
    const { runs: found, problems } = await countLedger(folder(), undefined);
    expect(problems).toEqual([]);
    const opened = plans.folders.ledgerLines().filter(({ kind }) => kind === 'open');
    expect(found).toEqual([
      { run: opened[0].run, began: opened[0].at, done: 2, rejected: 1, undecided: 1, isClosed: true },
      { run: opened[1].run, began: opened[1].at, done: 1, rejected: 0, undecided: 1, isClosed: false },
    ]);
    appendFileSync(pathOf(0), 'x\n');
    expect((await countLedger(folder(), undefined)).problems).toHaveLength(1);
  });
});

describe('the earlier runs that a run does not resume', () => {
  const notice = () => setup.plans.events.findLast(({ event }) => event === 'ledger.unfinished')?.message;
  const stopped = () => answerOf('stop', '40201');

  it('are named, the last three by name and the others by number', async () => {
    const { plans } = setup;
    for (const ids of names(5)) await plans.execute([ids], stopped);
    await plans.plan(['new']);
    const opened = plans.folders.ledgerLines().filter(({ kind }) => kind === 'open');
    const named = opened.slice(2).map(({ run, at }) => `${run} of ${at}`);
    expect(notice()).toContain(`${named.join(', ')}, and 2 before them. What they left open`);
  });

  it('do not include those that were closed', async () => {
    const { plans } = setup;
    await plans.execute(names(150), done);
    await plans.plan(['new']);
    expect(notice()).toBeUndefined();
    await plans.execute(['x'], stopped);
    await plans.plan(['new']);
    expect(notice()).not.toContain('before them');
  });

  it('do not include those of another service or base_url', async () => {
    const { plans } = setup;
    await plans.execute(['x'], stopped, { service_id: 'other' });
    await plans.execute(['x'], stopped, { base_url: 'http://127.0.0.1:8' });
    await plans.plan(['new']);
    expect(notice()).toBeUndefined();
  });

  it('are named also when their date is unreadable', async () => {
    const { plans } = setup;
    await plans.execute(['x'], stopped);
    const [{ run }] = plans.folders.ledgerLines();
    writeFileSync(pathOf(0), `${JSON.stringify({ ...plans.folders.ledgerLines()[0], at: 'long ago' })}`);
    await plans.plan(['new']);
    expect(notice()).toContain(`${run} of an unknown date`);
  });
});
