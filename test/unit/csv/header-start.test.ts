import { describe, expect, it } from 'vitest';
import { Scanner } from '../../../src/schema/scanner.ts';
import { contentOf } from '../../../src/service/export/content.ts';

const REST =
  'df_api_version,df_correction_datetime,df_event_detail_log_id,df_event_log_id,df_event_name,df_server_datetime,df_unified_id';
const bytes = (text: string) => Buffer.from(text);

describe('a header whose first name begins with a bracket', () => {
  it.each(['[promo]', '{x}', '<tag>'])('is CSV all the same: %s', (name) => {
    const body = bytes(`${name},${REST}\nv,1,2026-01-01 00:00:00.000,a,a,e,2026-01-01 00:00:00.000,u\n`);
    expect(contentOf(body, false)).toBe('other');
    const scanner = new Scanner({ requireSystem: true });
    for (const byte of body) scanner.push(Uint8Array.of(byte));
    expect(scanner.finish().header[0]).toBe(name);
  });

  it('is waited for when it has not come whole', () => {
    expect(contentOf(bytes(`[promo],df_api`), false)).toBeUndefined();
  });

  it.each([
    ['{"result":"fail","message":"client_connection_closed"}', 'json'],
    ['[]\n', 'json'],
    ['<html>\n<body>,df_unified_id</body>', 'html'],
  ])('leaves %s what it is', (text, content) => {
    expect(contentOf(bytes(text), true)).toBe(content);
    const scanner = new Scanner({ requireSystem: true });
    expect(() => {
      scanner.push(bytes(text));
      scanner.finish();
    }).toThrow(expect.objectContaining({ reason: 'not_csv' }));
  });
});
