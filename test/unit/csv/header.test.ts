import { describe, expect, it } from 'vitest';
import { ExportScanner } from '../../../src/cells/columns/export-scanner.ts';
import { bodyStart } from '../../../src/cells/csv/body-start.ts';
import { MAX_COLUMNS } from '../../../src/cells/csv/row.ts';
import { REQUIRED_COLUMNS } from '../../../src/cells/header.ts';
import { contentOf } from '../../../src/service/export/content.ts';
import { malformedOf } from '../../support/failure.ts';
import { scanIn } from '../../support/scan.ts';

const MIB = 1024 * 1024;

describe('a header with too many columns', () => {
  const parse = (text: string) => scanIn(new ExportScanner({ needsEventColumns: false }), Buffer.from(text));
  const header = (count: number, name = 'a') => Array.from({ length: count }, () => name).join(',');

  it('is refused with the limit in the message', () => {
    for (const text of [header(MAX_COLUMNS + 1), header(MAX_COLUMNS + 1, ''), header(500_000), ','.repeat(MIB)]) {
      const failure = malformedOf(() => parse(`${text}\n`));
      expect(failure.reason).toBe('too_many_columns');
      expect(failure.message).toContain(
        `more columns than an export may have: expected at most ${MAX_COLUMNS} columns`,
      );
    }
  });

  it('begins one above the limit', () => {
    expect(() => parse(`${header(MAX_COLUMNS)}\n${header(MAX_COLUMNS, '1')}\n`)).not.toThrow();
  });
});

const REST = REQUIRED_COLUMNS.toSorted();
const bytes = (text: string) => Buffer.from(text);

describe('a header whose first name begins with a bracket', () => {
  it.each(['[promo]', '{x}', '<tag>'])('is read as CSV: %s', (name) => {
    const body = bytes(`${name},${REST}\nv,1,2026-01-01 00:00:00.000,a,a,e,2026-01-01 00:00:00.000,u\n`);
    expect(bodyStart(body, false)).toEqual({ textStart: 0 });
    const scanner = new ExportScanner({ needsEventColumns: true });
    for (const byte of body) scanner.push(Uint8Array.of(byte));
    expect(scanner.finish().scan.columns[0].headerName).toBe(name);
  });

  it('is waited for when it is incomplete', () => {
    expect(bodyStart(bytes('[promo],df_api'), false)).toBeUndefined();
  });

  it.each([
    ['{"result":"fail","message":"client_connection_closed"}', 'json'],
    ['[]\n', 'empty_list'],
    ['<html>\n<body>,df_unified_id</body>', 'html'],
  ])('is not confused with %s', (text, content) => {
    expect(contentOf(bytes(text))).toBe(content);
    const scanner = new ExportScanner({ needsEventColumns: true });
    expect(() => {
      scanner.push(bytes(text));
      scanner.finish();
    }).toThrow(expect.objectContaining({ reason: 'not_csv' }));
  });
});
