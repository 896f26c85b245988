import { describe, expect, it } from 'vitest';
import { ExportScanner } from '../../../src/cells/columns/export-scanner.ts';
import { MAX_COLUMNS } from '../../../src/cells/csv/row.ts';
import { contentOf } from '../../../src/service/export/content.ts';
import { malformedOf } from '../../support/failure.ts';
import { scanIn } from '../../support/scan.ts';

const MIB = 1024 * 1024;

const parse = (text: string) => scanIn(new ExportScanner({ needsEventColumns: false }), Buffer.from(text));

describe('a header with too many columns', () => {
  const header = (count: number, name = 'a') => Array.from({ length: count }, () => name).join(',');

  it('is refused with the limit in the message', () => {
    for (const text of [header(MAX_COLUMNS + 1), header(MAX_COLUMNS + 1, ''), header(500_000), ','.repeat(MIB)]) {
      const failure = malformedOf(() => parse(`${text}\n`));
      expect(failure.reason).toBe('too_many_columns');
      expect(failure.message).toContain(`has more columns, wanted at most ${MAX_COLUMNS} columns`);
    }
  });

  it('begins one above the limit', () => {
    expect(() => parse(`${header(MAX_COLUMNS)}\n${header(MAX_COLUMNS, '1')}\n`)).not.toThrow();
  });
});

describe('a body of another format', () => {
  it.each([
    ['{"result":"fail","message":"client_connection_closed"}', 'json'],
    ['[]\n', 'empty_list'],
    ['<html>\n<body>,df_unified_id</body>', 'html'],
  ])('is refused as no CSV: %s', (text, content) => {
    expect(contentOf(Buffer.from(text))).toBe(content);
    expect(malformedOf(() => parse(text)).reason).toBe('not_csv');
  });
});
