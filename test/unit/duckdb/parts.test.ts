import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

describe('a column of an export in several parts', () => {
  const part = (id: string, x: string, more = {}) => csvOf([{ id, x, ...more }]);
  const typeOf = async () => (await fixture.query('SELECT typeof(any_value(x)) AS t FROM events'))[0].t;
  const load = async (...parts: string[]) => {
    await fixture.load([fixture.window('2026-01-01', parts)]);
    return (await fixture.query('SELECT x, CAST(_rescued AS VARCHAR) AS r FROM events ORDER BY _key')).map(
      Object.values,
    );
  };

  it.each([
    ['first', ['text', '1', '2']],
    ['second', ['1', 'text', '2']],
    ['last', ['1', '2', 'text']],
  ])('has the type of the cells of all parts together: text in the %s', async (_, [a, b, c]) => {
    const rows = await load(part('a', a), part('b', b), part('c', c));
    expect(await typeOf()).toBe('VARCHAR');
    expect(rows).toEqual([a, b, c].map((x) => [x, null]));
  });

  it('has the wider type of two parts, ignoring a part that lacks it', async () => {
    const rows = await load(part('a', '1.5'), csvOf([{ id: 'b', y: '1' }]), part('c', '7'), part('d', ''));
    expect(await typeOf()).toBe('DOUBLE');
    expect(rows).toEqual([
      [1.5, null],
      [null, null],
      [7, null],
      [null, null],
    ]);
  });
});
