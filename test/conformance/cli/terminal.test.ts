import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { CliFixture } from '../../support/processes/cli-child.ts';

let fixture: CliFixture;
afterEach(() => fixture.close());

/** Runs a command in a terminal of so many columns, whose output is that of the whole. */
function inTerminal(argv: readonly string[], columns = 80, env: Record<string, string> = {}) {
  const script = `exec script -qec "stty cols ${columns}; $(printf '%q ' "$@")" /dev/null`;
  return fixture.startWords(['bash', '-c', script, 'bash'], argv, { TERM: 'xterm', ...env });
}

/** The lines that a terminal of so many columns shows at the end; a line that wraps is one line. */
function screenOf(output: string, columns: number): string[] {
  const lines = [''];
  let at = 0;
  for (const [part] of output.matchAll(/\u001b\[[\d;]*[A-Za-z]|./gsu)) {
    const line = lines.at(-1) ?? '';
    if (part === '\n') {
      lines.push('');
      at = 0;
    } else if (part === '\r') at -= at % columns;
    else if (part === '\u001b[K') lines[lines.length - 1] = line.slice(0, at);
    else if (!part.startsWith('\u001b')) lines[lines.length - 1] = line.slice(0, at) + part + line.slice(++at);
  }
  return lines;
}

describe.runIf(existsSync('/usr/bin/script'))('a terminal', () => {
  it.each([60, 80, 120])('of %i columns keeps each log line above the bar', async (columns) => {
    fixture = await CliFixture.start({ fault: () => delay(200, undefined) });
    const argv = fixture.syncArgs({ column_types: { level: 'long' }, max_concurrent_exports: 1 });
    const { code, stdout } = await inTerminal(argv, columns).ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/[█░]/);
    expect(stdout).toContain('\u001b[33m');
    const screen = screenOf(stdout, columns);
    expect(screen.filter((line) => /[█░]/.test(line))).toEqual([]);
    expect(screen.filter((line) => /cells? not of its type, kept as text in _rescued$/.test(line))).not.toEqual([]);
    for (const line of screen.slice(0, -2)) expect(line).toMatch(/^\d\d:\d\d:\d\dZ [ !] .*[^ ]$/);
    expect(JSON.parse(screen.at(-2) ?? '')).toMatchObject({ exit: 0 });
  });

  it('is refused as the reader of an Arrow stream', async () => {
    fixture = await CliFixture.start();
    const { code, stdout } = await inTerminal(fixture.syncInto('arrow', '-', {})).ended;
    expect([code, stdout]).toEqual([2, expect.stringContaining('stdout is a terminal')]);
    expect(fixture.sim.requests()).toEqual([]);
  });

  it('shows no colours under NO_COLOR, and a pipe gets none', async () => {
    fixture = await CliFixture.start();
    const argv = fixture.syncArgs({ column_types: { level: 'long' } }, ['--full-refresh']);
    const { stdout } = await inTerminal(argv, 80, { NO_COLOR: '1' }).ended;
    const { stderr } = await fixture.start(argv, { TERM: 'xterm' }).ended;
    for (const text of [stdout, stderr]) {
      expect(text).toContain('kept as text in _rescued');
      expect(text).not.toContain('\u001b[3');
    }
  });
});
