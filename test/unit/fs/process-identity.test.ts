import { spawn } from 'node:child_process';
import fs, { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { identityFrom, livenessOf, OWN_IDENTITY } from '../../../src/fs/process-identity.ts';
import { DEAD_PID } from '../../support/processes/lock-owner.ts';
import { systemError, withCall } from '../../support/system-calls.ts';
import { until } from '../../support/wait.ts';

const { pid, host, space, started } = OWN_IDENTITY;

describe('a stored process identity', () => {
  it('is read without unknown keys', () => {
    expect(identityFrom({ pid: 1, host: 'h', space: '', started: '', token: 'x' })).toEqual({
      pid: 1,
      host: 'h',
      space: '',
      started: '',
    });
  });

  it.each([
    ['no object', 'text'],
    ['null', null],
    ['undefined', undefined],
    ['a pid as text', { ...OWN_IDENTITY, pid: '7' }],
    ['no pid', { host, space, started }],
    ['a pid with a fraction', { ...OWN_IDENTITY, pid: 1.5 }],
    ['pid 0, which means a whole group', { ...OWN_IDENTITY, pid: 0 }],
    ['a pid below 0, which does too', { ...OWN_IDENTITY, pid: -pid }],
    ['no host', { pid, space, started }],
    ['a space that is no text', { ...OWN_IDENTITY, space: 7 }],
    ['a start that is no text', { ...OWN_IDENTITY, started: 7 }],
  ])('is invalid: %s', (_what, value) => {
    expect(identityFrom(value)).toBeUndefined();
  });
});

describe.runIf(space !== '' && started !== '')('the liveness of a process', () => {
  it('is compared by process id and start time', () => {
    expect(livenessOf(OWN_IDENTITY)).toBe('alive');
    expect(livenessOf({ ...OWN_IDENTITY, pid: DEAD_PID })).toBe('dead');
    expect(livenessOf({ ...OWN_IDENTITY, started: `${started}0` })).toBe('dead');
  });

  it('is unknown of another host, boot or container, and without a start time', () => {
    for (const more of [{ host: `${host}2` }, { space: `${space}2` }, { space: '' }, { started: '' }]) {
      expect(livenessOf({ ...OWN_IDENTITY, ...more })).toBe('unknown');
    }
    // Its number is nobody's here, which says nothing about there.
    expect(livenessOf({ ...OWN_IDENTITY, pid: DEAD_PID, host: `${host}2` })).toBe('unknown');
  });

  it('is dead for a process that has ended and was not collected by its parent', async () => {
    // Before the child ends the shell is replaced by a program that asks for no child of its own.
    const parent = spawn('sh', ['-c', 'sleep 0.5 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore'] });
    try {
      const child = await new Promise<number>((resolve) => parent.stdout.once('data', (text) => resolve(Number(text))));
      const fields = () => readFileSync(`/proc/${child}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
      await until(() => fields()[0] === 'Z');
      expect(livenessOf({ ...OWN_IDENTITY, pid: child, started: fields()[19] ?? '' })).toBe('dead');
    } finally {
      parent.kill('SIGKILL');
    }
  });

  it('is known for a process of another user', async () => {
    const of = (code: string) => {
      const kill = () => {
        throw systemError(code);
      };
      return withCall(process, 'kill', kill, () => livenessOf(OWN_IDENTITY));
    };
    expect([await of('EPERM'), await of('ESRCH')]).toEqual(['alive', 'dead']);
  });

  it('follows /proc: a zombie is dead, and an unreadable entry is unknown', async () => {
    const reported = (of: (text: string) => string) => {
      const read = (real: (...all: unknown[]) => unknown, path: unknown, ...rest: unknown[]) => {
        const text = String(real(path, ...rest));
        return String(path).startsWith('/proc/') ? of(text) : text;
      };
      return withCall(fs, 'readFileSync', read, () => livenessOf(OWN_IDENTITY));
    };
    for (const [state, liveness] of [
      ['S', 'alive'],
      ['Z', 'dead'],
      ['X', 'dead'],
    ])
      expect(await reported((text) => text.replace(/\) . /, `) ${state} `))).toBe(liveness);
    const hidden = () => {
      throw systemError('EACCES');
    };
    expect(await reported(hidden)).toBe('unknown');
  });
});
