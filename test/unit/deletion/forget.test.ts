import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import reportSchema from '../../../schemas/deletion.json' with { type: 'json' };
import { systemClock } from '../../../src/base/clock.ts';
import { transientError } from '../../../src/base/errors.ts';
import { createLogger } from '../../../src/base/log.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { parseDestinationConfig } from '../../../src/config/destination.ts';
import { verifyLedger } from '../../../src/erasure/ledger/verify.ts';
import { reportTable } from '../../../src/erasure/report.ts';
import type { ProfileDeleter } from '../../../src/erasure/send-requests.ts';
import { loadSuppression, suppress, suppressionHmac } from '../../../src/erasure/suppression/list.ts';
import { NO_LIMITS } from '../../../src/service/http/headers.ts';
import type { Json } from '../../support/airbyte/connector.ts';
import { Folders, quickClock } from '../../support/deletion/deletions.ts';
import { type ForgetPlan, planForget } from '../../support/deletion/plans.ts';
import { persons } from '../../support/suppressed.ts';

let folders: Folders;
beforeEach(() => {
  folders = new Folders();
});
afterEach(() => folders.close());

async function* of<T>(...values: T[]): AsyncGenerator<T> {
  yield* values;
}

describe('a confirmed deletion', () => {
  let deleted: string[];
  let logged: string[];
  const deleter: ProfileDeleter = {
    async deleteProfile(id) {
      deleted.push(id);
      return { kind: 'done', code: '20000', status: 200, message: 'ok', limits: NO_LIMITS };
    },
  };
  beforeEach(() => {
    deleted = [];
    logged = [];
  });

  async function plan(
    ids: readonly unknown[],
    more: Json = {},
    signal = new AbortController().signal,
  ): Promise<ForgetPlan> {
    const { config } = parseDestinationConfig(
      {
        base_url: 'http://127.0.0.1:9',
        service_id: 's',
        import_token: 'tok-1234',
        ledger_dir: folders.ledger,
        ...more,
      },
      () => undefined,
    );
    const io = {
      clock: quickClock(),
      random: () => 0.5,
      logger: createLogger(
        (event) => logged.push(event.message),
        'info',
        (text) => text,
      ),
      signal,
      lines: undefined,
    };
    return planForget(of(...ids), { config, io, spoolDir: folders.root });
  }

  async function hashOf(ids: readonly unknown[], more: Json = {}): Promise<string> {
    return (await plan(ids, more)).hash;
  }

  it('fails if it is stopped after its last request, and the next run finishes it', async () => {
    const hash = await hashOf(['a', 'b']);
    const stop = new AbortController();
    const last: ProfileDeleter = {
      async deleteProfile(id, signal) {
        const answer = await deleter.deleteProfile(id, signal);
        if (deleted.length === 2) stop.abort(new Error('SIGTERM'));
        return answer;
      },
    };
    let purges = 0;
    const purge = async () => void purges++;
    const first = await plan(['a', 'b'], {}, stop.signal);
    const { report, failure } = await first.execute(hash, last, purge);
    expect(report).toMatchObject({ done: 2, undecided: 0 });
    expect(failure?.message).toMatch(/stopped after its last request: the purge .* was not done/);
    expect(purges).toBe(0);
    expect(logged.some((line) => line.includes('deleted at the service; the purge is not done'))).toBe(true);
    const second = await plan(['a', 'b']);
    expect((await second.execute(hash, deleter, purge)).failure).toBeUndefined();
    expect(purges).toBe(1);
    expect(deleted).toEqual(['a', 'b']);
  });

  it('has a hash of exactly its ids, its base_url and its service_id', async () => {
    const hash = await hashOf(['a', 'b', 'c']);
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
    expect(await hashOf(['c', 'a', 'b', 'a', ''])).toBe(hash);
    expect(await hashOf(['a', 'b'])).not.toBe(hash);
    expect(await hashOf(['a', 'b', 'c '])).not.toBe(hash);
    expect(await hashOf(['a', 'b', 'c'], { service_id: 't' })).not.toBe(hash);
    expect(await hashOf(['a', 'b', 'c'], { base_url: 'http://127.0.0.1:8' })).not.toBe(hash);
    expect(await hashOf(['a', 'b', 'c'], { ledger_key: 'another-key-of-32-characters-or-so', dry_run: false })).toBe(
      hash,
    );
  });

  it('executes for the hash of the same list only, whatever dry_run says', async () => {
    const ids = ['a', 'b', 'a', 7];
    const hash = await hashOf(ids);
    const other = await plan([...ids, 'c']);
    await expect(other.execute(hash, deleter)).rejects.toThrow(/is not what was confirmed/);
    expect(deleted).toEqual([]);
    const real = await plan(ids);
    const { report, failure } = await real.execute(hash, deleter);
    expect(failure).toBeUndefined();
    expect(deleted).toEqual(['a', 'b']);
    expect(report).toMatchObject({
      mode: 'executed',
      received: 4,
      refused: { not_a_string: 1 },
      duplicates: 1,
      done: 2,
    });
    const ajv = new Ajv({ strict: false });
    expect(ajv.validate(reportSchema, report), JSON.stringify(ajv.errors)).toBe(true);
    expect(reportTable(report)).toMatch(/deleted +2\n/);
  });

  it('is subject to the guards', async () => {
    const real = await plan(['a', 'b'], { max_deletions_per_sync: 1 });
    await expect(real.execute(real.hash, deleter)).rejects.toMatchObject({ exitCode: 5 });
    expect(deleted).toEqual([]);
  });

  it('compares the cap with the ids about to be requested, without those that an unfinished run has deleted', async () => {
    const first = await plan(['a', 'b']);
    await first.execute(first.hash, {
      async deleteProfile(id, signal) {
        if (id === 'a') return deleter.deleteProfile(id, signal);
        return { kind: 'stop', code: '40201', status: 200, message: 'token', limits: NO_LIMITS };
      },
    });
    const real = await plan(['b', 'a'], { max_deletions_per_sync: 1 });
    expect(real.report).toMatchObject({ ids: 2, done_before: 1, guard: null });
    expect((await real.execute(real.hash, deleter)).failure).toBeUndefined();
    expect(deleted).toEqual(['a', 'b']);
  });

  it('reports the head of its ledger also when it is stopped after its deletions', async () => {
    const stop = new AbortController();
    const real = await plan(['a'], {}, stop.signal);
    const broken = real.execute(real.hash, deleter, async () => {
      stop.abort(new Error('SIGTERM'));
      stop.signal.throwIfAborted();
    });
    await expect(broken).rejects.toThrow('SIGTERM');
    const lines = folders.ledgerLines();
    expect(lines.map(({ kind }) => kind)).toEqual(['open', 'before', 'after', 'purging']);
    expect(logged).toContain(`Head of the ledger: ${String(lines[3].mac)}`);
  });

  it('is closed as usual if it is stopped after its last step', async () => {
    const stop = new AbortController();
    const real = await plan(['a'], {}, stop.signal);
    const { failure, report } = await real.execute(real.hash, deleter, async () => stop.abort(new Error('SIGTERM')));
    expect([failure, report.places]).toMatchObject([undefined, [{ rows_removed: 1 }]]);
    expect(folders.ledgerLines().at(-1)?.kind).toBe('close');
  });

  it('reports no number of removed rows if its purge fails, and the next run names a location that it leaves out', async () => {
    const real = await plan(['a']);
    const { report, failure } = await real.execute(real.hash, deleter, async () => {
      throw transientError('The disk is full.');
    });
    expect(failure).toMatchObject({ exitCode: 3, message: 'The disk is full.' });
    expect(report.places).toMatchObject([{ people: 1, rows: 1, rows_removed: null, error: 'The disk is full.' }]);
    expect(report.purged).toBeUndefined();
    const [found, open] = folders.ledgerLines().slice(-2);
    expect([found.kind, open.outcome, open.counts, open.unreached]).toEqual([
      'purging',
      'open',
      {},
      ['The disk is full.'],
    ]);
    expect(logged.find((line) => line.includes('deleted at the service'))).toContain('run again with the same list');
    await plan(['a']);
    expect(logged.at(-1)).toMatch(
      /did not finish its purge of duckdb \/somewhere\/events.duckdb, which this one does not/,
    );
  });

  it('reports that nobody was purged yet if the service ends it early', async () => {
    const real = await plan(['a', 'b']);
    const refusing: ProfileDeleter = {
      async deleteProfile(id, signal) {
        if (id === 'a') return deleter.deleteProfile(id, signal);
        return { kind: 'stop', code: '40201', status: 200, message: 'No such token.', limits: NO_LIMITS };
      },
    };
    let purges = 0;
    const { report, failure } = await real.execute(real.hash, refusing, async () => void purges++);
    expect([purges, report.done, failure?.exitCode]).toEqual([0, 1, 2]);
    expect(logged.at(-1)).toMatch(
      /^These people are deleted at the service; the purge is not done: the run ended before\./,
    );
  });

  it('begins its purge with every answer in the ledger on disk', async () => {
    const real = await plan(['a', 'b']);
    let kinds: unknown[] = [];
    await real.execute(real.hash, deleter, async () => {
      kinds = folders.ledgerLines().map(({ kind }) => kind);
    });
    expect(kinds).toEqual(['open', 'before', 'after', 'before', 'after', 'purging']);
  });

  it('purges before its closing line, with the people found and the rows removed in the ledger', async () => {
    const real = await plan(['a']);
    await real.execute(real.hash, deleter, async () => {});
    const kinds = ['open', 'before', 'after', 'purging', 'purge', 'close'];
    expect(folders.ledgerLines().map(({ kind }) => kind)).toEqual(kinds);
    const [, , , found, removed] = folders.ledgerLines();
    expect(found).toMatchObject({ target: 'duckdb /somewhere/events.duckdb', counts: { people: 1, rows: 1 } });
    const counts = { people: 1, rows: 1, files_rewritten: 0, bytes_before: 9, bytes_after: 5 };
    expect(removed).toMatchObject({ target: 'duckdb /somewhere/events.duckdb', outcome: 'done', counts });
    expect((await verifyLedger(folders.ledger, undefined)).ok).toBe(true);
  });
});

describe('the suppression list', () => {
  const io = { clock: systemClock };
  const key = new Secret('a suppression key of 32 characters');
  const hashOf = (id: string) => suppressionHmac(key, Buffer.from(id));
  const holds = (path: string, id: string) => loadSuppression(path, key).isSuppressed(Buffer.from(id), 0, id.length);

  it('begins with its header and names each person once, by hash', async () => {
    const path = join(folders.root, 'sub', 'forgotten.jsonl');
    expect(await suppress(path, persons('u1', 'u2', 'u1'), key, io)).toBe(2);
    expect(await suppress(path, persons('u2', 'u3'), key, io)).toBe(1);
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
    expect(lines).toEqual([
      expect.stringMatching(/^\{"v":1,"kind":"suppression","key_check":"[0-9a-f]{16}"\}$/),
      ...['u1', 'u2', 'u3'].map((id) => `{"hmac":"${hashOf(id)}"}`),
    ]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(holds(path, 'u3')).toBe(true);
    expect(holds(path, 'u4')).toBe(false);
  });

  it('loses nobody when several runs append at once', async () => {
    const path = join(folders.root, 'sub', 'f.jsonl');
    const people = (run: number) => Array.from({ length: 300 }, (_, i) => `u${run}-${i}`);
    const added = await Promise.all(
      [1, 2, 3].map((run) => suppress(path, persons(...people(run), 'everybody'), key, io)),
    );
    expect(added.reduce((sum, n) => sum + n, 0)).toBe(901);
    expect([1, 2, 3].flatMap(people).filter((id) => !holds(path, id))).toEqual([]);
    expect(readFileSync(path, 'utf8').trimEnd().split('\n')).toHaveLength(902);
    expect(readdirSync(join(folders.root, 'sub'))).toEqual(['f.jsonl']);
  });

  it('drops an incomplete last line after a crash', async () => {
    const path = join(folders.root, 'f.jsonl');
    await suppress(path, persons('u1'), key, io);
    writeFileSync(path, `${readFileSync(path, 'utf8')}{"hmac":"12`);
    expect(() => loadSuppression(path, key)).toThrow(/Line 3/);
    expect(await suppress(path, persons('u2'), key, io)).toBe(1);
    expect(holds(path, 'u1') && holds(path, 'u2')).toBe(true);
  });

  it('is neither written nor read under another key', async () => {
    const path = join(folders.root, 'f.jsonl');
    await suppress(path, persons('u1'), key, io);
    const other = new Secret('another suppression key of 32 of them');
    await expect(suppress(path, persons('u2'), other, io)).rejects.toMatchObject({ kind: 'config' });
    expect(() => loadSuppression(path, other)).toThrow(/another key/);
    expect(readFileSync(path, 'utf8').trimEnd().split('\n')).toHaveLength(2);
  });

  it('requires a key of at least 32 characters', async () => {
    const path = join(folders.root, 'f.jsonl');
    const short = new Secret('k'.repeat(31));
    await expect(suppress(path, persons('u1'), short, io)).rejects.toThrow(/32 characters/);
    writeFileSync(path, '');
    expect(() => loadSuppression(path, short)).toThrow(/32 characters/);
  });

  it('is not appended to a file of another kind', async () => {
    const path = join(folders.root, 'people.csv');
    for (const text of ['external_id\nu1', '{"v":1,"kind":"proof"}\n', '\u0000']) {
      writeFileSync(path, text);
      await expect(suppress(path, persons('u1'), key, io)).rejects.toMatchObject({ kind: 'config' });
      expect(readFileSync(path, 'utf8')).toBe(text);
    }
    await expect(suppress(folders.root, persons('u1'), key, io)).rejects.toMatchObject({ kind: 'config' });
  });

  it('may be written by hand without a header', async () => {
    const path = join(folders.root, 'f.jsonl');
    writeFileSync(path, `{"hmac":"${hashOf('u1')}"}\n`);
    expect(await suppress(path, persons('u1', 'u2'), key, io)).toBe(1);
    expect(holds(path, 'u1') && holds(path, 'u2')).toBe(true);
  });

  it('may be an empty file before', async () => {
    const path = join(folders.root, 'f.jsonl');
    writeFileSync(path, '');
    expect(await suppress(path, persons('u1'), key, io)).toBe(1);
    expect(readFileSync(path, 'utf8')).toMatch(/^\{"v":1/);
  });
});
