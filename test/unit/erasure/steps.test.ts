import { existsSync, readFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { transientError } from '../../../src/base/errors.ts';
import { Ledger } from '../../../src/erasure/ledger/ledger.ts';
import { json, SUCCESS } from '../../support/erasure/deletions.ts';
import { event, PLACES, setUpErasure } from '../../support/erasure/fixture.ts';
import { type Recording, record } from '../../support/recorder.ts';
import { withCall } from '../../support/system-calls.ts';

const erasure = setUpErasure();
const { at, holding, load, planOf, requestedIds, run, runAt, useProfiles, writeList } = erasure;

const PASSING = /lock$|_dfinery\/tmp|rewriting|^spool|\.tmp$/;
const tell = (path: string) =>
  PASSING.test(path)
    ? undefined
    : path
        .replace('events/event_date=2026-01-15', 'day')
        .replace(/part-[0-9a-f-]{36}/, 'part')
        .replace(/events\/_delta_log\/0{19}/, 'log/');

/** A line of the ledger by its kind and outcome, one of the suppression list by what it is. */
function appended(path: string, line: string): string {
  const { kind, outcome, hmac } = JSON.parse(line);
  if (path.endsWith('ledger.jsonl')) return ['ledger', kind, outcome].filter(Boolean).join(' ');
  return hmac === undefined ? 'list header' : 'list person';
}

const STEPS = [
  'store ledger/ledger.key',
  'ledger begin',
  // Everybody is on the list before the first place is changed.
  ...['store ledger/suppressed.key', 'list header', 'list person', 'list person'],
  'name ledger/suppressed.jsonl',
  ...['ledger purge', 'ledger purge', 'commit', 'store events.duckdb', 'ledger purged'],
  ...['ledger purge', 'ledger purge'],
  ...['store lake/_dfinery.json', 'store lake/day/data.parquet', 'store lake/_dfinery.json'],
  'ledger purged',
  ...['ledger purge', 'ledger purge'],
  ...['store delta/day/part.parquet', 'store delta/log/1.json', 'remove delta/day/part.parquet'],
  ...['store delta/log/1.checkpoint.parquet', 'store delta/events/_delta_log/_last_checkpoint'],
  ...['remove delta/log/0.json', 'ledger purged'],
  // The service knows the profiles until all places are purged.
  ...['m1', 'm2'].flatMap((id) => ['ledger before', `request ${id}`, 'ledger after done']),
];

describe('an erasure', () => {
  let hash: string;
  /** Whom the service has deleted: it no longer knows the profile. */
  let deleted = new Set<string>();
  beforeEach(async () => {
    useProfiles('');
    erasure.answerProfiles = (response) => {
      const lines = ['m1', 'm2', 'm3'].filter((id) => !deleted.has(id)).map((id) => `${id},marked-u-${id}`);
      response.writeHead(200, { 'content-type': 'text/csv' });
      response.end(['df_external_id,df_unified_id', ...lines, ''].join('\n'));
    };
    deleted = new Set();
    await load([event('m1'), event('m1', 2), event('m2'), event('m3')]);
    writeList('ids.txt', 'm1\nm2\n');
    hash = (await planOf('--file', at('ids.txt'))).hash;
  });

  const execute = () => run('forget', '--file', at('ids.txt'), '--json', '--execute', '--confirm', hash);

  const recorded = (slow?: RegExp): Promise<Recording> =>
    record({ folder: at(''), tell, appended, ...(slow && { slow }) }, async (note) => {
      erasure.answer = ({ id }, response) => {
        note(`request ${id}`);
        deleted.add(id ?? '');
        json(response, SUCCESS);
      };
      const { code, said } = await execute();
      expect(code, said).toBe(0);
      erasure.answer = (_, response) => json(response, SUCCESS);
    });

  /** The whole lines of this kind that the ledger has. */
  function ledgerLines(kind: string): string[] {
    const path = at('ledger/ledger.jsonl');
    const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];
    return lines.filter((line) => line.includes(`"kind":"${kind}"`));
  }

  it('takes its steps in order, each on the disk before the next', async () => {
    expect((await recorded(/ledger\.jsonl$/)).steps).toEqual(STEPS);
  });

  it('requests nobody if the ledger cannot say that a place was purged', async () => {
    const refusePurged: Parameters<typeof withCall>[2] = async (real, content) => {
      if ((content as { kind: string }).kind === 'purged') throw transientError('The ledger is full.');
      return real(content);
    };
    const { code, said } = await withCall(Ledger.prototype, 'write', refusePurged, execute);
    expect(code, said).toBe(3);
    expect(requestedIds()).toEqual([]);
  });

  if (process.env.TRIES_EVERY_END === undefined) return;
  it('forgets nothing and nobody, wherever it ends: the same command finishes it', async () => {
    const { cuts } = await recorded();
    for (const cut of cuts) {
      cut.restore();
      deleted = new Set(cut.notes.map((note) => note.replace('request ', '')));
      // The ledger knows of every request.
      expect(ledgerLines('before').length, cut.name).toBeGreaterThanOrEqual(deleted.size);
      const answered = ledgerLines('after').length;
      const list = at('ledger/suppressed.jsonl');
      const isPurging = holding('marked-u-m1').length < PLACES.length;
      if (isPurging) expect(readFileSync(list, 'utf8').match(/"hmac"/g), cut.name).toHaveLength(2);

      erasure.forgetRequests();
      const { code, said } = await execute();
      expect(code, `${cut.name}: ${said}`).toBe(0);
      expect(requestedIds(), cut.name).toEqual(['m1', 'm2'].slice(answered));
      for (const member of ['m1', 'm2']) expect(holding(`marked-u-${member}`), cut.name).toEqual([]);
      expect(holding('marked-u-m3').length, cut.name).toBeGreaterThanOrEqual(PLACES.length);
    }
    for (const words of PLACES) {
      const verified = await runAt('verify', words);
      expect(verified.code, `${words}: ${verified.said}`).toBe(0);
    }
  });
});
