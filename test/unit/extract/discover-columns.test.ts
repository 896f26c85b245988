import { expect, it } from 'vitest';
import { addDays } from '../../../src/base/days.ts';
import { parseSourceConfig } from '../../../src/config/source.ts';
import { discoverColumns } from '../../../src/extract/discover-columns.ts';
import { Fixture, type ServiceSettings, steadyRows } from '../../support/extract/extraction.ts';
import { type FaultRule, refusal } from '../../support/service/faults.ts';

/** A service that exports no more than two days at once; its rows have a column `age` of numbers. */
const shortAnswers: FaultRule = ({ from, to }) =>
  to > addDays(from, 1)
    ? refusal(500)
    : {
        kind: 'body',
        change: (csv) => csv.replace(/^.+$/gm, (line, at) => `${line},${at === 0 ? 'age' : 42}`),
      };

const SERVICE = { base_url: 'http://127.0.0.1', service_id: 'svc', export_token: 'canary-token' };

/** The columns that are discovered in six days with rows. */
async function columnsOf(service: ServiceSettings, more: object = {}) {
  const rows = steadyRows('2026-01-15', '2026-01-20', 4);
  const fixture = await Fixture.start('2026-01-20T14:00:00Z', { rows, ...service });
  const { config } = parseSourceConfig({ ...SERVICE, to_date_inclusive: 'true', ...more }, {});
  return discoverColumns(config, fixture.deps());
}

it.each<[number, string, object]>([
  [400, '2026-01-19', { day: '2026-01-19' }],
  [401, '2026-01-17 to 2026-01-19', {}],
])(
  'ends with exit 2, and names the days that it asked for last, if they are refused: %s',
  async (status, days, where) => {
    const error = await columnsOf({ fault: () => refusal(status) }).catch((reason) => reason);
    expect(error).toMatchObject({ exitCode: 2, message: expect.stringContaining(`does not export ${days}: `) });
    expect(error.where).toEqual(where);
  },
);

it.each(['auto', 'true', 'false'])('finds types in days with rows if few can be exported at once: %s', async (end) => {
  const days = { to_date_inclusive: end === 'true' };
  const columns = await columnsOf({ days, fault: shortAnswers }, { to_date_inclusive: end });
  expect(columns).toContainEqual({ source: 'age', group: 'custom', type: 'long' });
});

it('takes a list column without values for lists of texts, since nothing widens it later', async () => {
  const fault: FaultRule = () => ({
    kind: 'body',
    change: (csv) => csv.replace(/^.+$/gm, (line, at) => `${line},${at === 0 ? 'tags' : '[]'}`),
  });
  expect(await columnsOf({ fault })).toContainEqual({ source: 'tags', group: 'custom', type: 'string[]' });
});

it('gives the event name the type that column_types gives event_name, as a place does', async () => {
  const columns = await columnsOf({}, { column_types: { event_name: 'long' } });
  expect(columns).toContainEqual({ source: 'df_event_name', group: 'system', type: 'long' });
});
