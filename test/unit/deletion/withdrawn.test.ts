import { describe, expect, it } from 'vitest';
import { people, record, setUpDeletions, state, write } from '../../support/deletion/deletions.ts';

const setup = setUpDeletions({ service_id: 's', import_token: 'tok-1234' });
const withdrawn = (id: unknown) => record(id, { _ab_cdc_deleted_at: '2026-01-01T00:00:00Z' });

describe('a withdrawn request', () => {
  it('is refused with every earlier row of that id, and affects no later row', async () => {
    const input = [
      ...[record('a'), record('a'), record('b'), withdrawn('a'), state(1)],
      ...[withdrawn('c'), record('c'), withdrawn(7), withdrawn(undefined), state(2)],
    ];
    const output = await write({ files: setup.files, config: setup.config(), catalog: people(), input });
    expect(output.code).toBe(0);
    expect(setup.server.ids()).toEqual(['b', 'c']);
    const destinationStats = { recordCount: 1, rejectedRecordCount: 3 };
    expect(output.of('STATE')).toMatchObject([{ state: { destinationStats } }, { state: { destinationStats } }]);
    expect(output.text).toContain('6 of 8 rows are refused');
  });
});

describe('an input without an id', () => {
  it('begins no run in the ledger, and returns its states', async () => {
    const output = await write({ files: setup.files, config: setup.config(), input: [state(1), state(2)] });
    expect(output.code).toBe(0);
    expect(output.of('STATE')).toHaveLength(2);
    expect(setup.folders.ledgerFiles()).toEqual([]);
  });
});
