import { createHash, createHmac } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { HashKey } from '../../../src/base/hash-key.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { ExportScanner } from '../../../src/cells/columns/export-scanner.ts';
import { columnEdits, readBack, scanIn } from '../../support/scan.ts';

const keyOf = (text: string) => new HashKey(new Secret(text));
const TEXT = 'a hash key of at least 32 characters';
const KEY = keyOf(TEXT);

function edited(drop: readonly string[], hash: readonly string[], csv: string) {
  const edits = columnEdits(drop, hash, KEY);
  const { result, written } = scanIn(new ExportScanner({ needsEventColumns: false, edits }), Buffer.from(csv));
  return { result, rows: readBack(written) };
}

describe('dropped and hashed columns', () => {
  it('hide no person from the suppression list, wherever the id stands', () => {
    const edits = columnEdits(['gone'], ['df_unified_id'], KEY);
    const scanner = new ExportScanner({
      needsEventColumns: false,
      edits,
      suppression: { has: (id) => id.toString() === 'u1' },
    });
    const { result, written } = scanIn(scanner, Buffer.from('gone,df_unified_id,n\nx,u1,1\ny,u2,2\nu1,u3,3\n'));
    expect(readBack(written).slice(1)).toEqual([
      [KEY.hashOf('u2'), '2'],
      [KEY.hashOf('u3'), '3'],
    ]);
    expect(result).toMatchObject({ rows: 3, keptRows: 2 });
  });

  it('are found in whichever form of Unicode their names are written', () => {
    const listed = ['전화', '이메일'].map((name) => name.normalize('NFC'));
    for (const sent of [listed, listed.map((name) => name.normalize('NFD'))]) {
      const { result, rows } = edited([listed[0]], [listed[1]], `${sent[0]},${sent[1]},n\n1,2,3\n`);
      expect(rows).toEqual([
        [sent[1], 'n'],
        [KEY.hashOf('2'), '3'],
      ]);
      expect(result.editedNames).toEqual(listed);
    }
  });

  it.each(['df_event_name', 'event_name'])(
    'include event names, by either name of theirs, in a column %s',
    (header) => {
      for (const name of ['df_event_name', 'event_name']) {
        const { result, rows } = edited([], [name], `${header}\nlogin\n`);
        expect(rows).toEqual([[header], [KEY.hashOf('login')]]);
        expect(result.eventNames).toEqual([]);
        expect(result.editedNames).toEqual([name]);
      }
    },
  );

  it('are all columns of a name, named once', () => {
    const { result, rows } = edited(['a'], [], 'a,b,a\n1,2,3\n');
    expect(rows).toEqual([['b'], ['2']]);
    expect(result.editedNames).toEqual(['a']);
  });

  it('may not be all columns', () => {
    expect(() => edited(['a', 'b'], [], 'a,b\n1,2\n')).toThrow('leave one');
    expect(edited(['a'], ['b'], 'a,b\n1,2\n').rows[0]).toEqual(['b']);
  });

  it('that are dropped are not counted for invalid UTF-8', () => {
    const edits = columnEdits(['gone'], [], undefined);
    const body = Buffer.from('gone,b\n#,#\n#,x\n', 'latin1').map((byte) => (byte === 0x23 ? 0xff : byte));
    const { result } = scanIn(new ExportScanner({ needsEventColumns: false, edits }), body);
    expect(result.invalidUtf8).toEqual({ cells: 1, first: { row: 2, column: 'b' } });
  });
});

describe('a hash key', () => {
  it.each([
    ['as long as a block', 'k'.repeat(64)],
    ['longer than a block', 'k'.repeat(65)],
    ['shorter than a block', TEXT],
    ['of other letters', 'ключ'.repeat(16)],
  ])('gives the HMAC-SHA-256 of a text or of its bytes: %s', (_name, text) => {
    const expected = createHmac('sha256', text).update('한').digest('hex');
    const key = keyOf(text);
    expect(key.hashOf('한')).toBe(expected);
    expect(key.hashOf(Buffer.from('한'))).toBe(expected);
    const [inner, outer] = Object.values(key.hmacPads('k')).map((pad) => Buffer.from(pad, 'hex'));
    const sha256 = (...parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest();
    expect(sha256(outer, sha256(inner, Buffer.from('한'))).toString('hex')).toBe(expected);
  });

  it('is in no text that is made of it', () => {
    expect(inspect(KEY)).toBe(`HashKey { keyCheck: '${KEY.keyCheck}' }`);
    expect(JSON.parse(JSON.stringify(KEY))).toEqual({ keyCheck: KEY.keyCheck });
  });
});
