import { describe, expect, it } from 'vitest';
import { LF } from '../../../src/base/ascii.ts';
import { ExportScanner, type ScannerOptions, type ScanResult } from '../../../src/cells/columns/export-scanner.ts';
import { REQUIRED_COLUMNS } from '../../../src/cells/header.ts';
import { DATETIME_DASH, DATETIME_DOT, LONG, LONG_WIDE, NULL_TEXT, STRING } from '../../../src/cells/types/forms.ts';
import { malformedOf } from '../../support/failure.ts';
import { scanIn } from '../../support/scan.ts';

const scan = (csv: string, options: Partial<ScannerOptions> = {}) =>
  scanIn(new ExportScanner({ needsEventColumns: false, ...options }), Buffer.from(csv));
const columnOf = (result: ScanResult, name: string) => result.columns.find((column) => column.headerName === name);
/** Seconds from 1970 of a local time. */
const secondOf = (time: string) => Date.parse(`${time}Z`) / 1000;

describe('a scan', () => {
  it('classifies every cell', () => {
    const { result } = scan(
      'n,s,t,e\n1,a1-한,2026.1.2 3:04,\nnull,"x ""1"" y",2026-01-02 03:04:05.678,null\n9007199254740993,,2026-01-01 00:00:00,\n',
    );
    expect(columnOf(result, 'n')).toMatchObject({
      headerName: 'n',
      group: 'custom',
      forms: LONG | NULL_TEXT | LONG_WIDE,
      type: 'long',
      filledCount: 3,
    });
    expect(columnOf(result, 's')).toMatchObject({ forms: STRING, type: 'string', filledCount: 2 });
    expect(columnOf(result, 't')).toMatchObject({
      forms: DATETIME_DOT | DATETIME_DASH,
      type: 'datetime',
      earliestTime: secondOf('2026-01-01T00:00:00'),
      latestTime: secondOf('2026-01-02T03:04:05'),
    });
    expect(columnOf(result, 'e')).toMatchObject({ forms: NULL_TEXT, type: undefined, filledCount: 1 });
  });

  it('keeps declared types, whatever the cells are', () => {
    const { result } = scan(
      'df_api_version,df_items_df_quantity,df_discount,df_server_datetime,df_order_id,df_keyword\n' +
        '1.10,2,1,2026-01-02,null,\n1.2,2.0,9007199254740993,yesterday,007,\n2.0,x,null,2026.1.2 3:04,1,\n',
    );
    expect(result.columns.map(({ headerName, type }) => [headerName, type])).toEqual([
      ['df_api_version', 'string'],
      ['df_items_df_quantity', 'long'],
      ['df_discount', 'double'],
      ['df_server_datetime', 'datetime'],
      ['df_order_id', 'string'],
      ['df_keyword', undefined],
    ]);
    expect(columnOf(result, 'df_server_datetime')).toMatchObject({
      earliestTime: secondOf('2026-01-02T00:00:00'),
      latestTime: secondOf('2026-01-02T03:04:00'),
    });
    expect(columnOf(result, 'df_order_id')?.forms).toBe(STRING);
  });

  it('reads datetimes in the configured zone, and takes skipped local times', () => {
    const csv = 'df_server_datetime,t\n2024-03-10 02:30:00,2024-11-03T01:30:00-05:00\n2024-11-03 01:30:00.000001,\n';
    const { result } = scan(csv, { timezone: 'America/New_York' });
    expect(columnOf(result, 'df_server_datetime')).toMatchObject({
      earliestTime: secondOf('2024-03-10T02:30:00'),
      latestTime: secondOf('2024-11-03T01:30:00'),
    });
    expect(columnOf(result, 't')).toMatchObject({ type: 'datetime', earliestTime: secondOf('2024-11-03T01:30:00') });
    expect(columnOf(scan(csv).result, 't')).toMatchObject({ type: 'string' });
  });

  it('reports repeated or missing detail log ids', () => {
    const csv = (...ids: string[]) => `a,df_event_detail_log_id\n${ids.map((id) => `x,${id}\n`).join('')}`;
    expect(scan(csv('1', '2', '3')).result.hasUniqueIds).toBe(true);
    expect(scan(csv()).result.hasUniqueIds).toBe(true);
    for (const repeated of [csv('1', '2', '1'), csv('1', '', '3'), csv('1', '"1"'), 'a,b\n1,2\n'])
      expect(scan(repeated).result.hasUniqueIds).toBe(false);
  });

  it('collects event names from either of their columns', () => {
    const names = ['df_purchase', 'df_view_cart', 'df_view_list', '', '구매', '"a ""b"""', 'df_view_cart'];
    for (const column of ['event_name', 'df_event_name']) {
      const { result } = scan(`${column},x\n${names.map((name) => `${name},1\n`).join('')}`);
      expect(result.eventNames).toEqual(['a "b"', 'df_purchase', 'df_view_cart', 'df_view_list', '구매']);
    }
    const many = Array.from({ length: 1500 }, (_, i) => `e${i}\n`).join('');
    expect(scan(`event_name\n${many}`).result.eventNames).toHaveLength(1000);
  });

  it('leaves out the rows of suppressed people from every count', () => {
    const asked: string[] = [];
    const has = (id: Buffer) => {
      asked.push(id.toString());
      return asked.at(-1) === 'a "b"';
    };
    const csv =
      'df_event_detail_log_id,df_unified_id,n\n1,u1,5\n1,"a ""b""",long secret text here\n2,,6\n3,"a ""b""",\n4,u2,7\n';
    const { result, written } = scan(csv, { suppression: { has } });
    expect(written.toString()).toBe('df_event_detail_log_id,df_unified_id,n\n1,u1,5\n2,,6\n4,u2,7\n');
    expect(asked).toEqual(['u1', 'a "b"', 'a "b"', 'u2']);
    expect(result).toMatchObject({ rows: 5, keptRows: 3, hasUniqueIds: true });
    expect(columnOf(result, 'n')).toMatchObject({ type: 'long', filledCount: 3 });
    expect(result.longestRowBytes).toBe(Buffer.byteLength('df_event_detail_log_id,df_unified_id,n\n'));
  });

  it('with a suppression list refuses a header without the column of people', () => {
    const error = malformedOf(() => scan('a,b\n1,2\n', { suppression: { has: () => true } }));
    expect(error.message).toContain('wanted df_unified_id');
  });

  it('refuses a header without the columns of every export, and names them', () => {
    const error = malformedOf(() => scan('a,df_unified_id\n', { needsEventColumns: true }));
    expect(error.reason).toBe('missing_columns');
    expect(error.message).toContain('df_server_datetime');
    expect(error.message).not.toContain('df_unified_id,');
    expect(scan(`${REQUIRED_COLUMNS}\n`, { needsEventColumns: true }).result.rows).toBe(0);
  });

  it('limits the bytes of a row, complete or not', () => {
    const row = Buffer.alloc(64 * 1024 * 1024 + 1, 'x');
    row.set([LF], row.length - 1);
    for (const text of ['"', '']) {
      const scanner = new ExportScanner({ needsEventColumns: false });
      scanner.push(Buffer.from(`a\n${text}`));
      const error = malformedOf(() => scanner.push(row));
      expect(error).toMatchObject({ reason: 'row_too_long', where: { row: 2, byte: 2 } });
    }
  });

  it('names in its errors what was wanted, never a cell', () => {
    const error = malformedOf(() => scan('a,b\nsecret,"sec"ret\n'));
    expect(error.message).toBe(
      'Row 2 (byte 16) has text behind a closing quote, wanted a comma or a line end; nothing of the export was used, ' +
        'try again later.',
    );
    expect(JSON.stringify([error.message, error.detail, error.where])).not.toContain('sec');
  });

  it('gives the same result for small chunks and for a body of megabytes', () => {
    const rows = Array.from({ length: 40_000 }, (_, i) =>
      i % 7 === 0 ? `${i},"한글 ""${i}""\r\nline",\xe9${i}\r\n` : `${i},plain\rcr,2026.1.${(i % 28) + 1} 3:04\n`,
    );
    const body = Buffer.from(`a,b,c\r\n${rows.join('')}`, 'utf8');
    body[body.indexOf('plain', body.length >> 1)] = 0xff;
    const cuts = [];
    for (let at = 1, step = 1; at < body.length; at += step, step = (step * 7919) % 70_001) cuts.push(at);
    const whole = scanIn(new ExportScanner({ needsEventColumns: false, minReadBytes: 1 << 26 }), body);
    const cut = scanIn(new ExportScanner({ needsEventColumns: false }), body, cuts);
    expect(cut.written.equals(whole.written)).toBe(true);
    expect(cut.result).toEqual(whole.result);
    expect(whole.result).toMatchObject({ rows: 40_000, invalidUtf8: { cells: 1 } });
  });
});

describe('cells that are not UTF-8', () => {
  const bad = (text: string, options: Partial<ScannerOptions> = {}) => {
    const body = Buffer.from(text, 'latin1').map((byte) => (byte === 0x23 ? 0xff : byte));
    return scanIn(new ExportScanner({ needsEventColumns: false, ...options }), body).result.invalidUtf8;
  };

  it('count once each, and the first is located', () => {
    expect(bad('a,b\nx,y\n')).toEqual({ cells: 0 });
    expect(bad('a,b\nx,y\n,##x#\n#,#\n')).toEqual({ cells: 3, first: { row: 3, column: 'b' } });
    expect(bad('a,b,c\n,"#,""#",#\n')).toEqual({ cells: 2, first: { row: 2, column: 'b' } });
  });

  it('do not count in rows that are left out', () => {
    const suppression = { has: () => true };
    expect(bad('df_unified_id,b\nx,#\n,#\n', { suppression })).toEqual({ cells: 1, first: { row: 3, column: 'b' } });
  });
});

it('a header may have empty names', () => {
  expect(scan('a,,b\n1,2,3\n').result.columns.map(({ headerName }) => headerName)).toEqual(['a', '', 'b']);
});
