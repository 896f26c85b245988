import { describe, expect, it } from 'vitest';
import { ExportScanner } from '../../../src/cells/columns/export-scanner.ts';
import { MAX_COLUMNS } from '../../../src/cells/csv/row.ts';
import { malformedOf } from '../../support/failure.ts';
import { scanIn } from '../../support/scan.ts';

const parse = (text: string) => scanIn(new ExportScanner({ needsEventColumns: false }), Buffer.from(text));

describe('a header with too many columns', () => {
  const header = (count: number, name = 'a') => Array.from({ length: count }, () => name).join(',');

  it('is refused with the limit in the message', () => {
    for (const text of [
      header(MAX_COLUMNS + 1),
      header(MAX_COLUMNS + 1, ''),
      header(500_000),
      ','.repeat(1024 * 1024),
    ]) {
      const failure = malformedOf(() => parse(`${text}\n`));
      expect(failure.reason).toBe('too_many_columns');
      expect(failure.message).toContain(`has more columns, wanted at most ${MAX_COLUMNS} columns`);
    }
  });

  it('begins one above the limit', () => {
    expect(() => parse(`${header(MAX_COLUMNS)}\n${header(MAX_COLUMNS, '1')}\n`)).not.toThrow();
  });
});
