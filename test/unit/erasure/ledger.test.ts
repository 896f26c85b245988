import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { proofPage } from '../../../src/cli/report/proof-page.ts';
import { verifyLedger } from '../../../src/erasure/ledger/chain.ts';
import { Ledger, type LedgerSettings, lockErasures } from '../../../src/erasure/ledger/ledger.ts';
import { locateLedger } from '../../../src/erasure/ledger/ledger-file.ts';
import type { LineOf } from '../../../src/erasure/ledger/lines.ts';
import { exitOfProof, type Proof, proveErasure } from '../../../src/erasure/ledger/proof.ts';
import { answerText, proofLines } from '../../../src/erasure/ledger/proof-text.ts';
import { IdList } from '../../../src/erasure/list/id-list.ts';
import { LeapingClock, ManualClock } from '../../support/clock.ts';
import { expectMode, HAS_MODES } from '../../support/modes.ts';
import { newFolder } from '../../support/new-folder.ts';
import { logRecorder } from '../../support/service/service.ts';
import { until } from '../../support/wait.ts';

let root: string;
let folder: string;
beforeEach(() => {
  root = newFolder();
  folder = join(root, 'ledger');
});

const SERVICE = { baseUrl: 'https://host', serviceId: 's' };
const clock = new LeapingClock();
const open = (more: Partial<LedgerSettings> = {}, isPlan = false, of: Clock = clock) =>
  Ledger.open(
    { ...SERVICE, ledgerDir: folder, ledgerKey: undefined, ...more },
    { clock: of, isPlan, ids: ['a', 'b', 'c'] },
  );
const decisionOf = (ledger: Ledger, id: string) => ledger.history.of(id).standingAnswer?.outcome;
const path = () => join(folder, 'ledger.jsonl');
const lines = () => readFileSync(path(), 'utf8').trimEnd().split('\n');
const verify = (head?: string) => verifyLedger(locateLedger(folder, undefined), head);

/** A run that requests these ids and has these answers. */
async function request(answers: Readonly<Record<string, 'done' | 'rejected'>>, more: Partial<LedgerSettings> = {}) {
  const ledger = await open(more);
  await ledger.begin({ ids: 1, places: [], requests: true });
  await answer(ledger, answers);
  return ledger;
}

/** Writes that the service was asked for these ids, and answered. */
async function answer(ledger: Ledger, answers: Readonly<Record<string, 'done' | 'rejected'>>): Promise<void> {
  for (const [name, outcome] of Object.entries(answers)) {
    const id = ledger.keys.idKey.hashOf(name);
    await ledger.write({ kind: 'before', id });
    await ledger.write({ kind: 'after', id, outcome, code: outcome === 'done' ? '20000' : '40000', status: 200 });
  }
}

describe('a ledger', () => {
  it('is a file of its owner that names nobody, with a key of its own', async () => {
    await request({ 'person-1': 'done' });
    expect(readFileSync(path(), 'utf8')).not.toContain('person-1');
    expectMode(folder, 0o700);
    expectMode(path(), 0o600);
    expectMode(join(folder, 'ledger.key'), 0o600);
    expect(existsSync(join(folder, 'ledger.lock'))).toBe(false);
  });

  it.runIf(process.getuid?.() === 0)('written by root belongs to the owner of its folder', async () => {
    mkdirSync(folder, { mode: 0o700 });
    chownSync(folder, 1234, 1235);
    await request({ a: 'done' });
    expect(statSync(path())).toMatchObject({ uid: 1234, gid: 1235 });
  });

  it('may be empty, and is then whole, but not absent', async () => {
    mkdirSync(folder, { mode: 0o700 });
    await open();
    expect(() => verify()).toThrow(`The ledger ${path()} cannot be read: `);
    writeFileSync(path(), '');
    expect(await verify()).toMatchObject({ ok: true, lines: 0 });
  });

  it('shows every edit, and with a head a tail that was cut off', async () => {
    const { head } = await request({ a: 'done', b: 'rejected' });
    expect(await verify(head)).toMatchObject({ ok: true, lines: 5, head });
    const whole = lines();
    const edits = [
      whole.map((line) => line.replace('"rejected"', '"done"')),
      whole.toSpliced(2, 1),
      [whole[0], whole[2], whole[1], ...whole.slice(3)],
      [...whole, whole[4]],
    ];
    for (const edited of edits) {
      writeFileSync(path(), `${edited.join('\n')}\n`);
      expect((await verify()).ok, edited.join('\n')).toBe(false);
      await expect(open()).rejects.toMatchObject({ exitCode: 1, message: expect.stringContaining('is broken') });
    }
    writeFileSync(path(), `${whole.slice(0, 3).join('\n')}\n`);
    expect((await verify()).ok).toBe(true);
    expect((await verify(head)).problems).toEqual([expect.stringContaining('lines were cut off at the end')]);
  });

  it('that an older copy has replaced under a run gets no further line', async () => {
    const ledger = await request({ a: 'done' });
    const older = `${lines().slice(0, 2).join('\n')}\n`;
    writeFileSync(path(), older);
    await expect(answer(ledger, { b: 'done' })).rejects.toThrow('lines before it are missing');
    expect(readFileSync(path(), 'utf8')).toBe(older);
  });

  it.each([40, 1])('does not count a line that a crash has cut by %i bytes: the next run removes it', async (bytes) => {
    const { head } = await request({ a: 'done' });
    truncateSync(path(), statSync(path()).size - bytes);
    expect(await verify()).toMatchObject({ ok: true, lines: 2, torn_bytes: expect.any(Number) });
    expect((await verify(head)).ok).toBe(false);
    const ledger = await open();
    expect([decisionOf(ledger, 'a'), ledger.history.hasConfirmed]).toEqual([undefined, false]);
    await request({ b: 'done' });
    expect(await verify()).toMatchObject({ ok: true, torn_bytes: 0 });
    expect(lines()).toHaveLength(5);
  });

  it('goes on after a long line, and names a last line that is none', async () => {
    await (await open({ reason: 'x'.repeat(100_000) })).begin({ ids: 1, places: [], requests: true });
    const ledger = await open();
    await ledger.begin({ ids: 1, places: [], requests: true });
    expect(await verify()).toMatchObject({ ok: true, lines: 2 });
    appendFileSync(path(), 'x\n');
    await expect(ledger.begin({ ids: 1, places: [], requests: true })).rejects.toThrow(
      'ledger.jsonl, line 3 is not a line of a ledger. Put it back',
    );
  });

  it('is written by several runs at once, each line after the other', async () => {
    const runs = await Promise.all([1, 2, 3].map(() => open({}, false, systemClock)));
    const names = Array.from({ length: 30 }, (_, i) => `id-${i}`);
    await Promise.all(runs.map((run) => run.begin({ ids: 30, places: [], requests: true })));
    await Promise.all(
      names.map((name, i) => runs[i % 3].write({ kind: 'before', id: runs[0].keys.idKey.hashOf(name) })),
    );
    expect(await verify()).toMatchObject({ ok: true, lines: 33 });
  });

  it('has one erasure at a time, and a stop ends the wait of another', async () => {
    const settings = { ...SERVICE, ledgerDir: folder, ledgerKey: undefined };
    const { events, logger } = logRecorder();
    const stop = new AbortController();
    const take = () => lockErasures(settings, { clock: new ManualClock(), signal: stop.signal, logger });
    const first = await take();
    const waiting = take();
    await until(() => events.length > 0);
    first?.release();
    const second = await take();
    stop.abort(new Error('stopped'));
    await expect(waiting).rejects.toThrow('stopped');
    second?.release();
  });

  it('is refused under another key, and without its key', async () => {
    await request({ a: 'done' });
    const other = new Secret('another key of at least 32 characters');
    await expect(open({ ledgerKey: other })).rejects.toThrow('under another ledger_key');
    rmSync(join(folder, 'ledger.key'));
    await expect(open()).rejects.toThrow('has lost its key');
    writeFileSync(join(folder, 'ledger.key'), 'short', { mode: 0o600 });
    await expect(open()).rejects.toThrow(`The key file ${join(folder, 'ledger.key')} has fewer than 32 characters`);
  });

  it.runIf(HAS_MODES)('is refused in a folder of everybody', async () => {
    await request({ a: 'done' });
    chmodSync(folder, 0o777);
    await expect(open()).rejects.toThrow('mode 0700');
  });

  it('is not made by a plan, which finds out whether it could be', async () => {
    await open({}, true);
    expect(existsSync(folder)).toBe(false);
    writeFileSync(join(root, 'file'), '');
    await expect(open({ ledgerDir: join(root, 'file', 'ledger') }, true)).rejects.toMatchObject({ exitCode: 2 });
  });

  it('does nothing more once it could not be written', async () => {
    const ledger = await request({ a: 'done' });
    rmSync(folder, { recursive: true });
    writeFileSync(folder, '');
    await expect(ledger.write({ kind: 'before', id: 'x' })).rejects.toThrow('nothing more was sent');
    await expect(ledger.write({ kind: 'before', id: 'x' })).rejects.toThrow('nothing more was sent');
  });
});

describe('the memory of a ledger', () => {
  it('knows of each service and id when its deletion was confirmed or rejected', async () => {
    await request({ a: 'done', b: 'rejected' });
    // The service no longer knows whom it has deleted.
    await request({ a: 'rejected' });
    const ledger = await open();
    expect(['a', 'b', 'c'].map((id) => decisionOf(ledger, id))).toEqual(['done', 'rejected', undefined]);
    expect(ledger.history.hasConfirmed).toBe(true);
    const other = await open({ serviceId: 'another' });
    expect([decisionOf(other, 'a'), other.history.hasConfirmed]).toEqual([undefined, false]);
  });
});

describe('a proof', () => {
  const prove = (ids: readonly string[], head?: string) => {
    const list = new IdList();
    for (const [i, id] of ids.entries()) list.add({ id, rowNumber: i + 2 });
    return proveErasure(list, { ...SERVICE, ledgerDir: folder, ledgerKey: undefined }, head);
  };

  const purgeOf = (ledger: Ledger, name: string, rows: number, place = 'duckdb /x', request = false) =>
    ({ kind: 'purge', id: ledger.keys.idKey.hashOf(name), place, rows, request }) as const;
  const purged = (rows: number, more: Partial<LineOf<'purged'>> = {}) =>
    ({ kind: 'purged', place: 'duckdb /x', rows, suppressed: 1, stays: [], unreached: false, ...more }) as const;
  const accessOf = (ledger: Ledger, name: string, ways: readonly string[], rows: number, places = ['duckdb /x']) =>
    ({ kind: 'access', id: ledger.keys.idKey.hashOf(name), places, ways, rows }) as const;
  const textOf = (proof: Proof, isList = true) => proofLines(proof, isList).join('\n');

  /** A run that counts these rows of an id, and removes them unless it is killed. */
  async function purge(rows: number, removed?: Parameters<typeof purged>[1]): Promise<void> {
    const ledger = await open();
    await ledger.begin({ ids: 1, places: ['duckdb /x'], requests: false });
    await ledger.write(purgeOf(ledger, 'a', rows));
    if (removed) await ledger.write(purged(rows, removed));
  }

  it('calls an ID open that was rejected, if a later run purged it and was killed before its request', async () => {
    await request({ a: 'rejected', b: 'done' });
    clock.pass(1_000);
    const ledger = await open();
    await ledger.begin({ ids: 2, places: ['duckdb /x'], requests: true });
    await ledger.write([purgeOf(ledger, 'a', 0, 'duckdb /x', true), purgeOf(ledger, 'b', 0)]);
    await ledger.write(purged(0));
    const proof = await prove(['a', 'b']);
    expect(proof.ids).toMatchObject([{ state: 'open' }, { state: 'confirmed' }]);
    expect(exitOfProof(proof)).toBe(3);
    expect(answerText(proof.ids[0], (at) => at.slice(0, 4))).toMatch(
      /^open: rejected \(40000\) \d{4}, then purged and/,
    );
    expect(textOf(proof)).toMatch(/Row 2 .*\n.*rejected the ID.*\n.*no row was found.*\n {2}open:/);
  });

  it.each([false, true])('opens a request that is to come, and no other (%s)', async (isToCome) => {
    const ledger = await open();
    await ledger.begin({ ids: 1, places: [], requests: true });
    const id = ledger.keys.idKey.hashOf('a');
    // The answer to the first request was lost: perhaps the service no longer knows whom it has deleted.
    for (const _ of [1, 2]) await ledger.write({ kind: 'before', id });
    await ledger.write({ kind: 'after', id, outcome: 'rejected', code: '40000', status: 200 });
    await ledger.write([purgeOf(ledger, 'a', 0, 'duckdb /x', isToCome), purged(0)]);
    expect((await prove(['a'])).ids).toMatchObject([{ state: isToCome ? 'open' : 'rejected' }]);
    // What is open is asked again, also for the same row.
    const { history } = await open();
    expect(history.of('a').answerTo(undefined)?.code).toBe(isToCome ? undefined : '40000');
  });

  it('says of each id what its lines say: answers, and rows that left places', async () => {
    const ledger = await open({ requestedBy: 'officer', reason: 'ticket 7' });
    await ledger.begin({ ids: 1, places: [], requests: true });
    await ledger.write([purgeOf(ledger, 'a', 3), purgeOf(ledger, 'b', 0)]);
    // The end of a purge ends none of another place.
    await ledger.write(purgeOf(ledger, 'a', 2, 'delta /y'));
    await ledger.write(purged(3));
    await answer(ledger, { a: 'done', b: 'rejected' });
    const proof = await prove(['a', 'b', 'c'], ledger.head);
    expect(proof.ids).toMatchObject([
      {
        row: 2,
        state: 'confirmed',
        answers: [{ outcome: 'done', code: '20000' }],
        removals: [
          { place: 'duckdb /x', rows: 3, removed_at: expect.any(String) },
          { place: 'delta /y', rows: 2, removed_at: null },
        ],
      },
      { row: 3, answers: [{ outcome: 'rejected', code: '40000' }], removals: [{ rows: 0 }] },
      { row: 4, state: 'unknown', answers: [], removals: [] },
    ]);
    expect(proof.summary).toMatchObject({ ids: 3, confirmed: 1, rejected: 1, unknown: 1, requested_by: ['officer'] });
    expect(proof.summary).toMatchObject({ reasons: ['ticket 7'], places: [{ rows: 3 }, { rows: 0 }] });
    expect(exitOfProof(proof)).toBe(1);
    const text = textOf(proof);
    expect(text).toMatch(/Row 2 .*\n.*duckdb \/x: 3 rows removed\n.*delta.*\n.*the service confirmed the deletion\n/);
    expect(text).toMatch(/delta \/y: 2 rows found; no line says that they were removed/);
    expect(text).toMatch(
      /Row 3 .*\n.*duckdb \/x: no row was found by this ID\n.*the service rejected the ID \(40000\)\n/,
    );
    expect(text).toMatch(/Row 4 .*\n {2}The ledger has no answer and no removal for it\.$/);
    expect(exitOfProof(await prove(['a', 'b']))).toBe(3);
    expect(text).toContain('delta /y: 0 rows found by ID and removed. A purge there was not finished');
    expect(exitOfProof(await prove(['b']))).toBe(0);
  });

  it('names an ID as open that was asked without a clear answer, or never asked', async () => {
    const ledger = await request({ c: 'done' });
    await ledger.write(['a', 'b'].map((id) => purgeOf(ledger, id, 1, 'duckdb /x', true)));
    await ledger.write(purged(2, { suppressed: 2 }));
    await ledger.write({ kind: 'before', id: ledger.keys.idKey.hashOf('b') });
    const proof = await prove(['a', 'b', 'c']);
    expect([exitOfProof(proof), proof.ids.map(({ state }) => state)]).toEqual([3, ['open', 'open', 'confirmed']]);
    const text = textOf(proof);
    expect(text).toContain('3 IDs: 1 confirmed by the service, 0 rejected by the service, 2 open.');
    expect(text).toMatch(/Row 2 .*\n.*removed\n {2}open: never asked\n/);
    expect(text).toMatch(/Row 3 .*\n.*removed\n {2}open: asked at \d{4}-.*, no clear answer\n/);
  });

  it('says that rows are gone whose purge was killed before its line, once the next run finds none', async () => {
    await purge(2);
    const killed = await prove(['a']);
    expect(exitOfProof(killed)).toBe(3);
    expect(proofLines(killed, false).slice(1, 3)).toEqual([
      '1 ID: 0 confirmed by the service, 0 rejected by the service, 0 open, 1 without a request to the service.',
      'duckdb /x: 0 rows found by ID and removed. A purge there was not finished, and people may still be there: run the same command again.',
    ]);
    expect(proofLines(killed, false).join()).toContain('no line says that they were removed');
    // Of another id: it removes nothing of this one.
    const other = await request({ b: 'done' });
    await other.write(purged(0));
    expect(exitOfProof(await prove(['a']))).toBe(3);
    await purge(0, {});
    expect(exitOfProof(await prove(['a']))).toBe(0);
    expect((await prove(['a'])).ids[0].removals).toMatchObject([{ rows: 2, removed_at: expect.any(String) }]);
  });

  it.each([6, 2])('counts rows once that a killed run found, of which the next run finds %i', async (rows) => {
    await purge(6);
    await purge(rows, {});
    const { ids, summary } = await prove(['a']);
    expect([ids[0].removals.length, summary.places[0].rows]).toEqual([1, 6]);
  });

  describe('of places that a run was to purge', () => {
    const [X, Y] = ['duckdb /x', 'parquet /y'];

    /** A run that is to purge `places`, and ends after `purgedPlaces`: killed, or refused there. */
    async function purgeOver(places: string[], purgedPlaces: string[], requests = false): Promise<Ledger> {
      const ledger = await open();
      clock.pass(1_000);
      await ledger.begin({ ids: requests ? 1 : 0, places, requests });
      for (const place of purgedPlaces) {
        await ledger.write(purgeOf(ledger, 'a', 0, place, requests));
        await ledger.write(purged(0, { place }));
      }
      return ledger;
    }
    /** The exit code of the proof, and each place, with what is still to do there. */
    const provedPlaces = async () => {
      const proof = await prove(['a']);
      const texts = proof.summary.places.map(({ place, unfinished, left_out_since }) =>
        [place, unfinished && 'not finished', left_out_since !== null && 'left out'].filter(Boolean).join(': '),
      );
      return [exitOfProof(proof), ...texts];
    };

    it.each([false, true])(
      'names one that the last run did not come to, and ends with 3 (requests: %s)',
      async (requests) => {
        await purgeOver([X, Y], [X, Y], requests);
        expect(await provedPlaces()).toEqual([requests ? 3 : 0, X, Y]);
        await purgeOver([X, Y], [X], requests);
        // A request alone has no places, and changes nothing about them.
        await request({ a: 'done' });
        expect(await provedPlaces()).toEqual([3, X, `${Y}: not finished`]);
        const proof = await prove(['a']);
        const text = textOf(proof, false);
        expect(text).toContain(
          'parquet /y: 0 rows found by ID and removed. A purge there was not finished, and people',
        );
        expect(text).toMatch(/ {2}\S+Z {2}parquet \/y: named in the erasure, and not purged since$/m);
        const page = proofPage(proof, { now: 0, isList: false });
        expect(page).toMatch(/parquet \/y: 0 rows .* not finished/);
        expect(page).toMatch(/; not purged since 2026-/);
        await purgeOver([Y, X], [Y, X]);
        expect(await provedPlaces()).toEqual([0, X, Y]);
      },
    );

    it('names one that later runs left out, until one of them purges it', async () => {
      await purgeOver([X, Y], [X]);
      await purgeOver([X], [X]);
      expect(await provedPlaces()).toEqual([0, X, `${Y}: left out`]);
      const proof = await prove(['a']);
      const sentence = /parquet \/y: .* The erasure of \S+Z named it, later ones did not\. It was not purged since/;
      expect(textOf(proof, false)).toMatch(sentence);
      expect(proofPage(proof, { now: 0, isList: false })).toMatch(sentence);
      await purgeOver([Y], [Y]);
      expect(await provedPlaces()).toEqual([0, X, Y]);
    });

    it('names none of a run that was refused before it purged anything, or that showed a person', async () => {
      await purgeOver([X], [X]);
      await purgeOver([X, Y], []);
      const ledger = await purgeOver([X, Y], []);
      await ledger.write(accessOf(ledger, 'a', ['the profiles of the service'], 0, [X, Y]));
      expect(await provedPlaces()).toEqual([0, X]);
    });
  });

  it('names what could not be reached of an ID until that ID is purged again, whoever else is', async () => {
    const exitOf = async (id: string) => exitOfProof(await prove([id]));
    await purge(0, { unreached: true });
    const other = await request({ b: 'done' });
    await other.write(purgeOf(other, 'b', 1));
    await other.write(purged(1));
    expect([await exitOf('a'), await exitOf('b')]).toEqual([3, 0]);
    await purge(0, {});
    expect(await exitOf('a')).toBe(0);
  });

  it('says that rows may have come back after a new suppression list, until rows of the ID left again', async () => {
    const sentence = 'The suppression list was begun anew at';
    await purge(2, {});
    clock.pass(1_000);
    expect(textOf(await prove(['a']), false)).not.toContain(sentence);
    const ledger = await open();
    await ledger.begin({ ids: 0, places: ['duckdb /x'], requests: false, suppressed: 0 });
    await ledger.write(purged(0, { suppressed: 0 }));
    await purge(0, {});
    expect(textOf(await prove(['a']), false)).toContain(sentence);
    clock.pass(1_000);
    await purge(2, {});
    expect(textOf(await prove(['a']), false)).not.toContain(sentence);
  });

  it('names other addresses of the service, whose deletions do not count', async () => {
    await request({ a: 'done' }, { baseUrl: 'https://old' });
    const proof = await prove(['a']);
    const sentence = 'The ledger also has the service s at https://old: those deletions do not count here.';
    expect([exitOfProof(proof), proofLines(proof, false)]).toEqual([1, expect.arrayContaining([sentence])]);
    expect(proofPage(proof, { now: 0, isList: false })).toContain(sentence);
  });

  it('says of a person without rows that none was found, in which ways and where', async () => {
    const ledger = await open({ requestedBy: 'clerk' });
    await ledger.begin({ ids: 0, places: ['duckdb /x'], requests: false });
    const ways = ['the profiles of the service', 'the column member'];
    await ledger.write(accessOf(ledger, 'a', ways, 0));
    const proof = await prove(['a']);
    // To show a person is no erasure: nobody asked for one, and it took place on no day.
    expect(proof.summary).toMatchObject({ since: null, until: null, requested_by: [] });
    const sentence =
      'no row was found (person), looked for by the profiles of the service and the column member in duckdb /x';
    expect([exitOfProof(proof), proofLines(proof, false).at(-1)]).toEqual([0, expect.stringContaining(sentence)]);
  });

  it('makes a page to sign, which holds no ID and needs no script', async () => {
    const ledger = await request({ 'marked-a': 'done' }, { requestedBy: 'officer <Kim>', reason: 'ticket 7' });
    // Two purges of as many rows, perhaps within one minute.
    for (const stays of [[], ['dbt']]) {
      await ledger.write(purgeOf(ledger, 'marked-a', 3));
      await ledger.write(purged(3, { stays }));
    }
    const proof = await prove(['marked-a']);
    const page = proofPage(proof, { now: Date.UTC(2026, 10, 28), isList: true });
    expect(page).not.toMatch(/marked|<script|https:\/\/(?!host)/);
    expect(page).not.toContain(ledger.keys.idKey.hashOf('marked-a').slice(0, 16));
    const texts = [
      'beside the folders',
      'officer &#60;Kim&#62;',
      'ticket 7',
      '<td>2</td>',
      'of 1 ID.',
      'dbt',
      proof.head,
      'signature',
    ];
    for (const text of texts) expect(page).toContain(text);
    expect(page).toMatch(/<td>3 rows by 2026-[^;]+; 3 rows by 2026-/);
  });

  it('needs a ledger: a ledger_dir without one, or that is a file, is named', async () => {
    await expect(prove(['a'])).rejects.toThrow(`The ledger ${path()} cannot be read: `);
    writeFileSync(folder, '');
    await expect(prove(['a'])).rejects.toThrow(`The ledger ${path()} cannot be read: `);
  });

  it('says nothing if the ledger was edited or cut', async () => {
    const { head } = await request({ a: 'done' });
    appendFileSync(path(), 'x\n');
    const broken = await prove(['a']);
    expect([broken.ids, broken.summary.since, exitOfProof(broken)]).toEqual([[], null, 1]);
    expect(proofLines(broken, false).at(-1)).toBe('The ledger is broken and proves nothing.');
    writeFileSync(path(), `${lines()[0]}\n`);
    expect((await prove(['a'], head)).problems).toHaveLength(1);
  });
});
