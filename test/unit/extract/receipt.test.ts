import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ColumnScan } from '../../../src/cells/columns/scan.ts';
import { type Download, type ExportFile, rowCount, sentAtOf } from '../../../src/extract/download/download.ts';
import { filesOf, receiptOf } from '../../../src/extract/window-builder.ts';
import { at } from '../../support/extract/extraction.ts';

const column = (source: string): ColumnScan => ({ source, group: 'custom', evidence: 0, filled: 1, misfits: 0 });
const part = (id: string, more: Partial<ExportFile> = {}, header: readonly string[] = ['b', 'a']): ExportFile => ({
  kind: 'file',
  spoolCrc: 0,
  endDeclared: false,
  id,
  key: 'k',
  path: `/spool/${id}.csv`,
  bytes: 10,
  sha256: `hash of ${id}`,
  sentAt: at('2026-03-07T13:00:00Z'),
  verifiedAt: '2026-03-07T13:00:01.000Z',
  exports: 2,
  scan: {
    header,
    columns: [...header].sort().map(column),
    rows: 3,
    suppressed: 1,
    longestRow: 9,
    hasDuplicateOrMissingIds: true,
    finalNewline: true,
    invalidUtf8: { cells: 4 },
    outLength: 10,
    eventNames: ['e'],
  },
  ...more,
});
const DAYS = { first: '2026-03-05', last: '2026-03-06' };
const download = (...parts: ExportFile[]): Download => ({
  kind: 'rows',
  from: '2026-03-05',
  to: '2026-03-06',
  files: parts,
  split: parts.length > 1 ? 'names' : 'none',
  days: DAYS,
  contains: undefined,
});

describe('a receipt', () => {
  it('has the numbers of its download', () => {
    expect(receiptOf(download(part('x')), false)).toEqual({
      v: 1,
      id: 'x',
      from: '2026-03-05',
      to: '2026-03-06',
      covers_from: '2026-03-05',
      covers_to: null,
      bytes: 10,
      sha256: 'hash of x',
      rows: 3,
      exports: 2,
      header: ['b', 'a'],
      columns: [column('a'), column('b')],
      split: 'none',
      verified_at: '2026-03-07T13:00:01.000Z',
      suppressed: 1,
      invalid_utf8: 4,
    });
  });

  it('adds up several downloads, with the time of the last and the id of the first', () => {
    const later = part('y', { verifiedAt: '2026-03-07T13:00:09.000Z', exports: 1, bytes: 5 }, ['a', 'c']);
    const earlier = part('z', { verifiedAt: '2026-03-07T13:00:00.000Z' });
    const receipt = receiptOf(download(part('x'), later, earlier), false);
    expect(receipt).toMatchObject({ id: 'x', bytes: 25, rows: 9, exports: 5, suppressed: 3, invalid_utf8: 12 });
    expect(receipt).toMatchObject({ split: 'names', verified_at: '2026-03-07T13:00:09.000Z', header: ['a', 'b', 'c'] });
    const all = createHash('sha256').update('hash of xhash of yhash of z').digest('hex');
    expect(receipt.sha256).toBe(all);
  });

  it('has a file for each download with rows', () => {
    const files = filesOf(download(part('x'), part('y', { path: undefined })));
    const { header, columns, rows, longestRow, hasDuplicateOrMissingIds, eventNames } = part('x').scan;
    const known = { header, columns, rows, longestRow, hasDuplicateOrMissingIds, eventNames };
    expect(files).toMatchObject([{ path: '/spool/x.csv', ...known }]);
  });
});

describe('the days that a download completes', () => {
  const covered = (contains: string | undefined, ...sent: string[]) => {
    const whole = download(...sent.map((text, i) => part(String(i), { sentAt: at(text) })));
    const { covers_from: first, covers_to: last } = receiptOf({ ...whole, contains }, false);
    return { first, last };
  };

  it('are those it contains that were over when its first part was requested', () => {
    const late = '2026-03-07T12:00:00Z';
    expect(covered('2026-03-06', late)).toEqual({ first: '2026-03-05', last: '2026-03-06' });
    expect(covered('2026-03-05', late)).toEqual({ first: '2026-03-05', last: '2026-03-05' });
    expect(covered('2026-03-06', late, '2026-03-07T11:59:59Z')).toEqual({ first: '2026-03-05', last: '2026-03-05' });
    expect(covered('2026-03-06', '2026-03-06T11:59:59Z')).toEqual({ first: '2026-03-05', last: null });
    expect(covered(undefined, late)).toEqual({ first: '2026-03-05', last: null });
  });

  it('count rows of suppressed people too', () => {
    const both = download(part('x'), part('y'));
    expect([rowCount(both), rowCount({ kind: 'gone' })]).toEqual([8, 0]);
    expect(sentAtOf(download(part('x', { sentAt: 5 }), part('y', { sentAt: 3 })))).toBe(3);
  });
});
