import { describe, expect, it } from 'vitest';
import { createLogger, type LogEvent } from '../../../src/base/log.ts';
import { printable, shellWord } from '../../../src/base/text.ts';

const RAW = [...'\u0000\n\r\t\u007f\u009b\u200b\u2028\u202e\u2066\ufeff', '\u001b[31m', '\ud800'];

describe('a text from an untrusted source', () => {
  it.each(RAW)('shows %j as an escape on one line', (raw) => {
    const shown = printable(`a${raw}b`);
    expect(shown).toMatch(/^a\\u[0-9a-f]{4}[^\p{C}\p{Zl}]*b$/u);
    expect(JSON.parse(`"${shown}"`)).toBe(`a${raw}b`);
  });

  it('is unchanged when every character is printable', () => {
    for (const text of ['', 'df_event_name', '상품 😀 é', 'a\u00a0b', '"\\u000a"']) expect(printable(text)).toBe(text);
  });

  it('is one printable line of the log, in message and fields', () => {
    const events: LogEvent[] = [];
    const logger = createLogger((event) => events.push(event), 'info', String);
    logger.warn('column.new', 'Column a\n12:00:00 ✗ forged', { column: '\u001b[2J', rows: 1 });
    expect(events).toEqual([
      {
        level: 'warn',
        event: 'column.new',
        message: 'Column a\\u000a12:00:00 ✗ forged',
        fields: { column: '\\u001b[2J', rows: 1 },
      },
    ]);
  });
});

it('quotes a path that a shell would split or change', () => {
  const words = ['한글/dfinery.json', 'my place.duckdb', "it's", '$HOME', ''].map(shellWord);
  expect(words).toEqual(['한글/dfinery.json', "'my place.duckdb'", "'it'\\''s'", "'$HOME'", "''"]);
  expect(shellWord('a\\b')).toBe(process.platform === 'win32' ? 'a\\b' : "'a\\b'");
});
