import { describe, expect, it } from 'vitest';
import { dayOption, durationOption, text } from '../../../src/cli/command.ts';

describe('days and lengths of time on the command line', () => {
  it('may be left out, but are not empty: an empty one is a variable that was never set [R205]', () => {
    expect([dayOption('from', undefined), durationOption('max-wait', undefined)]).toEqual([undefined, undefined]);
    expect([dayOption('from', '2026-01-02'), durationOption('max-wait', '20m')]).toEqual(['2026-01-02', 1_200_000]);
    const options = { logLevel: 'info', logFormat: 'text', config: 'a.json', purgeColumn: '' } as const;
    expect([text(options, 'config'), text(options, 'file')]).toEqual(['a.json', undefined]);
    expect(() => text(options, 'purgeColumn')).toThrow('The value of purge-column is empty');
    const empty = () => text(options, 'purgeColumn');
    for (const wrong of [() => dayOption('from', ''), () => durationOption('max-wait', ''), empty]) {
      expect(wrong).toThrow(expect.objectContaining({ exitCode: 2 }));
    }
  });
});
