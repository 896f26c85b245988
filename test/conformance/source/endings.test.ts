import { afterEach, describe, expect, it } from 'vitest';
import { SourceFixture } from '../../support/airbyte/source.ts';
import { onNth } from '../../support/service/faults.ts';

let fixture: SourceFixture;
afterEach(() => fixture.close());

const CONFIG = { start_date: '2026-01-15', to_date_inclusive: 'true', max_concurrent_exports: 1 };
const DAYS = { from: '2026-01-15', to: '2026-01-20' };
const cut = onNth([1, 4], { kind: 'cut', at: 'row_end', after_rows: 7 });

describe('a body whose generator was interrupted', () => {
  it.each([
    ['compressed', { gzip: true }],
    ['of a declared length', { framing: 'length' }],
    ['chunked', {}],
  ] as const)('is rejected: %s, the last row without its line end', async (_title, format) => {
    fixture = await SourceFixture.start({ format, fault: cut });
    const catalog = await fixture.catalog({}, ['events']);
    fixture.sim.setScenario({ fault: cut });
    const output = await fixture.read(catalog, undefined, CONFIG);
    expect(output.code).toBe(0);
    expect(output.records('events')).toHaveLength(fixture.sim.countRows(DAYS));
  });

  it('does not give columns by a header line that may be truncated within a name', async () => {
    fixture = await SourceFixture.start({});
    const namesOf = async () => {
      const [events] = (await fixture.run('discover', fixture.config())).catalog().streams;
      return Object.keys(events.json_schema.properties);
    };
    const whole = await namesOf();
    fixture.sim.setScenario({ fault: onNth(1, { kind: 'cut', at_byte: 40 }) });
    expect(whole).toEqual(expect.arrayContaining(await namesOf()));
  });
});
