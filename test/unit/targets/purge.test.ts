import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Place, TARGET_NAMES } from '../../support/targets/place.ts';
import { query } from '../../support/targets/query.ts';

const [D1, D2] = ['2026-01-01', '2026-01-02'] as const;
const LISTED = 3;
const person = (id: string, member: string) => ({ id, member, df_unified_id: `u-${member}` });

describe.each(TARGET_NAMES)('a purge of %s', (name) => {
  let place: Place;
  beforeEach(() => {
    place = new Place(name);
  });
  afterEach(() => place.close());

  const purge = async (onFound: () => Promise<number>) =>
    (await place.target.people()).purge(
      place.place,
      { ids: ['m1'], column: 'member' },
      { ...place.options(), onFound },
    );

  it('keeps the length of the suppression list over later loads', async () => {
    await place.load([[place.of(D1, [person('a', 'm1'), person('b', 'm2')])]]);
    await purge(async () => LISTED);
    expect((await place.state())?.suppressionLength).toBe(LISTED);
    await place.load([[place.of(D2, [person('c', 'm3')])]]);
    expect((await place.state())?.suppressionLength).toBe(LISTED);
    expect((await place.verify()).differences).toEqual([]);
  });

  it('ends a run that began before it: people on the list would come back', async () => {
    const day = [person('a', 'm1'), person('b', 'm2')];
    await place.load([[place.of(D1, day)]]);
    const sink = await place.target.open(place.place, place.options({ lockWaitMs: 10_000 }));
    await purge(async () => LISTED);
    const committing = sink.commit([place.of(D1, day)], place.facts(D1), place.signal);
    await expect(committing).rejects.toMatchObject({ kind: 'transient', message: expect.stringContaining('purged') });
    await sink.close();
    expect(await place.keys()).toEqual([`${D1} b`]);
  });

  it('removes nothing if the ledger or the list cannot be written', async () => {
    await place.load([[place.of(D1, [person('a', 'm1')])]]);
    const failing = purge(() => Promise.reject(new Error('no ledger')));
    await expect(failing).rejects.toThrow();
    expect(await place.keys()).toEqual([`${D1} a`]);
  });

  it('of all rows of a day does not make the day pruned', async () => {
    await place.load([[place.of(D1, [person('a', 'm1')]), place.of(D2, [person('b', 'm2')])]]);
    await purge(async () => 0);
    const receipt = (await place.state())?.receipts.get(D1);
    expect([receipt?.rows, receipt?.rows_stored, receipt?.pruned]).toEqual([1, 0, undefined]);
    expect(await place.verify()).toEqual({ differences: [], warnings: [] });
  });
});

describe('a purge of a DuckDB file with tables of others', () => {
  let place: Place;
  beforeEach(async () => {
    place = new Place('duckdb');
    await place.load([[place.of(D1, [person('a', 'm1'), person('b', 'm2')])]]);
  });
  afterEach(() => place.close());

  const preview = async () =>
    (await place.target.people()).previewPurge(place.place, { ids: ['m1'], column: 'member' }, place.options());

  it('keeps them, with their indexes, and names them before', async () => {
    await query(place.place, 'CREATE SCHEMA s; CREATE TABLE s.mine AS SELECT 1 AS x; CREATE INDEX i ON s.mine (x)');
    expect(await preview()).toMatchObject({ found: { people: 1 }, foreign: ['s.mine'] });
    expect((await place.keys()).length).toBe(2);
    await place.purge(['m1']);
    expect(await place.keys()).toEqual([`${D1} b`]);
    expect(await place.read('SELECT x FROM s.mine')).toEqual([{ x: 1 }]);
  });

  it('says in the plan that it cannot write one anew', async () => {
    await query(place.place, 'CREATE TABLE mine (x INTEGER, y INTEGER GENERATED ALWAYS AS (x + 1))');
    const previewed = await preview().then(
      () => 'copied',
      (error: { readonly kind: string }) => error.kind,
    );
    expect(['copied', 'config']).toContain(previewed);
    const done = await place.purge(['m1']).then(
      () => 'copied',
      (error: { readonly kind: string }) => error.kind,
    );
    expect(done).toBe(previewed);
  });
});
