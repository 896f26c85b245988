import { describe, expect, it } from 'vitest';
import { contentOf, originOf, peekBody, reasonIn } from '../../../src/service/export/content.ts';

async function* of(...parts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield Buffer.from(part);
}

describe('the first bytes of a body', () => {
  it.each<[bytes: string | number[], isAll: boolean, content: string | undefined]>([
    ['', true, 'empty'],
    ['', false, undefined],
    ['   ', false, undefined],
    ['   ', true, 'other'],
    ['df_', false, 'other'],
    ['a{', false, 'other'],
    ['\u00e9', false, 'other'],
    ['{', false, undefined],
    ['{', true, 'json'],
    [' \r\n\t[1', true, 'json'],
    ['\t\r\n <html>\n', false, 'html'],
    ['{odd},df_unified_id\n', false, 'other'],
    ['<odd>,df_unified_id\n', true, 'other'],
    ['\uFEFF', false, undefined],
    ['\uFEFF', true, 'other'],
    ['\uFEFFdf_', false, 'other'],
    ['\uFEFF  {"a":1}\n', false, 'json'],
    [[0xef], false, undefined],
    [[0xef], true, 'other'],
    [[0xef, 0xbb], false, undefined],
    [[0xef, 0xbb, 0x7b], false, 'other'],
    [[0xee, 0xbb], false, 'other'],
  ])('%j (all: %s) are %s', (bytes, isAll, content) => {
    expect(contentOf(typeof bytes === 'string' ? Buffer.from(bytes) : Uint8Array.from(bytes), { isAll })).toBe(content);
  });

  it('are read until they are conclusive, and passed on with the others', async () => {
    const peeked = await peekBody(of(' ', '\n', '{"a"', ':1}\n', 'more'));
    expect(peeked.content).toBe('json');
    const rest: Uint8Array[] = [];
    for await (const part of peeked.bytes) rest.push(part);
    expect(Buffer.concat(rest).toString()).toBe(' \n{"a":1}\nmore');
    expect([(await peekBody(of())).content, (await peekBody(of('  '))).content]).toEqual(['empty', 'other']);
  });

  it('are at most 64 KiB of white space', async () => {
    let taken = 0;
    let isClosed = false;
    async function* spaces() {
      try {
        for (;;) {
          taken++;
          yield Buffer.alloc(16_384, ' ');
        }
      } finally {
        isClosed = true;
      }
    }
    const peeked = await peekBody(spaces());
    expect([taken, peeked.content]).toEqual([4, 'other']);
    for await (const _ of peeked.bytes) break;
    expect(isClosed).toBe(true);
  });
});

describe('the reason of a failure', () => {
  it.each([
    ['{"result":"fail","message":"query_error"}', 'query_error'],
    ['\uFEFF{"message":"QUERY_ERROR"}', 'query_error'],
    ['{"error":"unauthorized"}', 'unauthorized'],
    ['{"message":"two words","code":"a_code"}', 'a_code'],
    ['{"message":" Spaced_Out ","code":"b"}', 'spaced_out'],
    ['{"message":"a__b","error":"c"}', 'c'],
    ['{"message":"_a","code":"b_"}', undefined],
    ['{"message":"Row 17 of user kim@example.com"}', undefined],
    ['{"message":"token_secret_x"}', undefined],
    [`{"message":"${'a'.repeat(60)}"}`, 'a'.repeat(60)],
    [`{"message":"${'a'.repeat(61)}"}`, undefined],
    ['{"error":{"code":"exceed_date_range_limit","message":"Too old."}}', 'exceed_date_range_limit'],
    ['{"error":{"message":"query_error"}}', 'query_error'],
    ['{"error":{"message":"token_secret_x"}}', undefined],
    ['{"message":5}', undefined],
    ['{"message"', undefined],
    ['x\uFEFF{"message":"a"}', undefined],
    ['null', undefined],
    ['[]', undefined],
    ['[null]', undefined],
    ['"text"', undefined],
    ['exceed_date_range_limit', 'exceed_date_range_limit'],
    ['\uFEFF "Query_Error"\r\n', 'query_error'],
    ['a_secret_x', undefined],
    [`a_${'a'.repeat(59)}`, undefined],
    ['query_error and more', undefined],
  ])('is read from %s', (text, reason) => {
    expect(reasonIn(text, 'secret')).toBe(reason);
  });
});

it.each([
  ['https://login.example/?t=1', 'https://login.example'],
  ['https://other.example:8443/a', 'https://other.example:8443'],
  ['/login', 'https://api.example'],
  ['mailto:someone', 'mailto:'],
  ['http://', undefined],
  [undefined, undefined],
])('of a redirect to %s is its origin alone', (location, origin) => {
  expect(originOf(location, 'https://api.example/x')).toBe(origin);
});
