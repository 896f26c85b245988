import fs, {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { verifyLedger } from '../../../src/erasure/ledger/verify.ts';
import { done, openFilesIn, setUpPlans } from '../../support/deletion/plans.ts';
import { ownerText } from '../../support/processes/lock-owner.ts';
import { systemError, withCall } from '../../support/system-calls.ts';

const setup = setUpPlans();
const folder = () => setup.plans.folders.ledger;
const lock = () => join(folder(), 'ledger.lock');
const KEY = { ledger_key: 'k'.repeat(32) };
const dry = async (more = {}) => (await setup.plans.plan(['a'], more)).report;

describe('the folder of a ledger', () => {
  it('is created with its parents, with mode 0700', async () => {
    const ledger_dir = join(setup.plans.folders.root, 'x', 'y');
    await setup.plans.execute(['a'], done, { ledger_dir });
    expect(statSync(ledger_dir).mode & 0o777).toBe(0o700);
    expect(readdirSync(ledger_dir).sort()).toEqual([expect.stringMatching(/^ledger-000001-/), 'ledger.key']);
  });

  it('has no key file when a key is given', async () => {
    await setup.plans.execute(['a'], done, KEY);
    expect(readdirSync(folder())).toEqual([expect.stringMatching(/^ledger-000001-[0-9a-f]{16}\.jsonl$/)]);
  });

  it('is refused if other users may write to it', async () => {
    mkdirSync(folder(), { recursive: true });
    chmodSync(folder(), 0o777);
    const refused = { exitCode: 2, message: expect.stringMatching(/Other users may write to .* set its mode to 0700/) };
    await expect(setup.plans.run(['a'])).rejects.toMatchObject(refused);
    await expect(setup.plans.plan(['a'])).rejects.toMatchObject(refused);
  });

  it('is verified with a note if other users may have removed files', async () => {
    await setup.plans.execute(['a'], done);
    expect(await verifyLedger(folder(), undefined)).toMatchObject({ ok: true, notes: [] });
    chmodSync(folder(), 0o777);
    const verdict = await verifyLedger(folder(), undefined);
    expect(verdict).toMatchObject({ ok: true, notes: [expect.stringContaining('Other users may write to')] });
  });

  it('fails the run before any request if it cannot be created', async () => {
    writeFileSync(join(setup.plans.folders.root, 'file'), '');
    const broken = setup.plans.run(['a'], { ledger_dir: join(setup.plans.folders.root, 'file', 'ledger') });
    await expect(broken).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringContaining('cannot be written (ENOTDIR)'),
    });
  });

  it('on a full disk is reported before any request, and unlocked', async () => {
    const asked: string[] = [];
    const full = (real: (...all: unknown[]) => unknown, path: unknown, ...more: unknown[]) => {
      if (String(path).endsWith('.jsonl')) throw systemError('ENOSPC');
      return real(path, ...more);
    };
    const run = () =>
      setup.plans.execute(['a'], (id) => {
        asked.push(id);
        return done();
      });
    await expect(withCall(fs.promises, 'open', full, run)).rejects.toMatchObject({
      kind: 'transient',
      message: expect.stringMatching(/^The disk of the ledger in \S+ is full \(ENOSPC\): .*nothing was sent\.$/),
      where: { file: folder() },
    });
    expect(asked).toEqual([]);
    expect(readdirSync(folder())).toEqual(['ledger.key']);
  });

  it('is unlocked again after a failed start and after the end of a run', async () => {
    const { plans } = setup;
    await plans.execute(['a'], done);
    expect(existsSync(lock())).toBe(false);
    await expect(plans.run(['b'], KEY)).rejects.toThrow('was written under another key');
    expect(existsSync(lock())).toBe(false);
    expect((await plans.execute(['b'], done)).report.done).toBe(1);
  });

  it('is locked while a run reads its list', async () => {
    const { plans } = setup;
    let refused: unknown;
    let second = Promise.resolve();
    const ids = (function* () {
      second = plans.run(['b']).then(
        () => {},
        (error: unknown) => {
          refused = error;
        },
      );
      yield 'a';
    })();
    await plans.run(ids);
    await second;
    expect(refused).toMatchObject({ kind: 'transient' });
    await plans.run(['b']);
  });

  it('gets no further line, and no request is sent, once another run has stolen the lock', async () => {
    const { plans } = setup;
    const asked: string[] = [];
    const taken = plans.execute(['a', 'b', 'c'], (id) => {
      asked.push(id);
      writeFileSync(lock(), ownerText());
      return done();
    });
    const { report, failure } = await taken;
    expect(failure).toMatchObject({
      kind: 'transient',
      message: expect.stringMatching(
        /Another run has taken over the ledger .* This run deleted 1 of 3 ids and left 2 undecided/,
      ),
    });
    expect(report.done).toBe(1);
    expect(asked).toEqual(['a']);
    expect(plans.kinds()).toEqual(['open', 'before']);
    if (process.platform === 'linux') expect(openFilesIn(folder())).toEqual([]);
  });

  it.each([
    ['the last one', 1, 'ledger-000002'],
    ['the last one that has a line', 0, 'ledger-000001'],
  ])('with a broken file stops every run, also a dry one: %s', async (_name, at, name) => {
    const { plans } = setup;
    await plans.execute(['a'], done);
    if (at === 0) writeFileSync(join(folder(), 'ledger-000002-0.jsonl'), '');
    else await plans.execute(['b'], done);
    appendFileSync(join(folder(), plans.folders.ledgerFiles()[at]), '{}\n');
    for (const isReal of [true, false]) {
      await expect(isReal ? plans.run(['c']) : plans.plan(['c'])).rejects.toMatchObject({
        exitCode: 1,
        message: expect.stringMatching(new RegExp(`${name}.* is broken: line 5 `)),
      });
    }
  });
});

describe('a dry run', () => {
  it('writes nothing when there is no ledger, nor into an empty folder', async () => {
    expect(await dry()).toMatchObject({ ids: 1, done_before: 0 });
    expect(existsSync(folder())).toBe(false);
    mkdirSync(folder());
    expect(await dry()).toMatchObject({ ids: 1, done_before: 0 });
    expect(await dry(KEY)).toMatchObject({ ids: 1, done_before: 0 });
    expect(await dry({ ledger_dir: undefined })).toMatchObject({ ids: 1, done_before: 0 });
    expect(readdirSync(folder())).toEqual([]);
  });

  it('is refused like a real run when the ledger has lost its key, and creates no key', async () => {
    const { plans } = setup;
    await plans.execute(['a'], done);
    rmSync(join(folder(), 'ledger.key'));
    for (const isReal of [true, false]) {
      await expect(isReal ? plans.run(['a']) : plans.plan(['a'])).rejects.toMatchObject({
        kind: 'config',
        message: expect.stringContaining('has lost its key'),
      });
    }
    expect(readdirSync(folder())).toEqual(plans.folders.ledgerFiles());
  });

  it('neither takes nor heeds the lock', async () => {
    const { plans } = setup;
    let planned: Promise<unknown> = Promise.resolve();
    const ids = (function* () {
      expect(existsSync(lock())).toBe(true);
      planned = dry();
      yield 'a';
    })();
    await plans.run(ids);
    expect(await planned).toMatchObject({ ids: 1 });
  });

  it('knows what an unfinished run has done, with the key file or a given key', async () => {
    const { plans } = setup;
    for (const more of [{}, { ...KEY, ledger_dir: join(plans.folders.root, 'other') }]) {
      await plans.execute(['a'], done, more, () => Promise.reject(new Error('no purge')));
      expect(await dry(more)).toMatchObject({ ids: 1, done_before: 1 });
    }
  });
});
