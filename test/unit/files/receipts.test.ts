import { afterEach, describe, expect, it } from 'vitest';
import type { Window } from '../../../src/extract/window.ts';
import { csvOf, on } from '../../support/targets/csv.ts';
import { FILE_TARGETS, FilesFixture } from '../../support/targets/target-fixture.ts';

let fixture: FilesFixture;
afterEach(() => fixture.close());

const [ONE, TWO] = ['2026-01-01', '2026-01-02'] as const;

/** The rows that the windows whose receipts are kept still have, once these were stored one by one. */
async function kept(...windows: Window[]) {
  await fixture.store(windows.map((window) => [window]));
  const snapshot = await fixture.snapshot();
  return snapshot?.state.receipts.map(({ window, rows_live: live }) => [window, live]);
}

describe.each(FILE_TARGETS)('the receipts of %s', (target) => {
  it('stay as long as rows of their window remain; a number is never reused', async () => {
    fixture = new FilesFixture(target);
    const rows = (...ids: string[]) => csvOf(ids.map((id) => ({ id, ...on(id === 'b' ? TWO : ONE) })));
    const days = (...ids: string[]) => fixture.fixture.window(ONE, rows(...ids), undefined, 2);
    expect(await kept(days('a', 'b'), days('b'))).toEqual([
      [1, 1],
      [2, 1],
    ]);
    expect(await kept(days())).toEqual([
      [1, 1],
      [2, 1],
      [3, 0],
    ]);
    expect(await kept(days('a'), days('a', 'b'))).toEqual([[5, 2]]);
    expect(await fixture.verify()).toEqual([]);
  });

  it('complete days, also without rows, and give the row count of the last window of exactly these days', async () => {
    fixture = new FilesFixture(target);
    const rows = (...ids: string[]) => csvOf(ids.map((id) => ({ id, ...on(ONE) })));
    const window = (day: typeof ONE | typeof TWO, ids: string[], days = 1) =>
      fixture.fixture.window(day, rows(...ids), undefined, days);
    const stored = [window(ONE, ['a', 'b']), window(TWO, []), window(ONE, ['a']), window(ONE, ['a', 'b', 'c'], 2)];
    await fixture.store(stored.map((one) => [one]));
    const { covered, rowsOf } = await fixture.priorLoads();
    expect([...covered].sort()).toEqual([ONE, TWO]);
    expect([rowsOf?.(ONE, ONE), rowsOf?.(TWO, TWO), rowsOf?.(ONE, TWO)]).toEqual([1, 0, 3]);
    expect([rowsOf?.(TWO, '2026-01-03'), rowsOf?.('2025-12-31', ONE)]).toEqual([undefined, undefined]);
  });
});
