import { describe, expect, it } from 'vitest';
import { NameSet } from '../../../src/cells/columns/name-set.ts';

const encoder = new TextEncoder();

function setOf(most: number, names: readonly string[]): NameSet {
  const set = new NameSet(most);
  for (const name of names) {
    const bytes = encoder.encode(`:${name}:`);
    set.add(bytes, 1, bytes.length - 1);
  }
  return set;
}

describe('a set of names', () => {
  it('has each name once, sorted, in any order of arrival', () => {
    expect(setOf(9, ['b', 'a', 'a', 'b', '한', 'b', 'c', 'a']).names()).toEqual(['a', 'b', 'c', '한']);
    expect(setOf(9, []).names()).toEqual([]);
  });

  it('distinguishes names of one length that differ in their first bytes, and recognises each', () => {
    const names = ['a_purchase', 'b_purchase', 'c_purchase', 'abc', 'bbc', 'x', 'xx'];
    expect(setOf(99, [...names, ...names, ...names].reverse()).names()).toEqual([...names].sort());
  });

  it('ignores new names when it is full, and recognises the others', () => {
    const set = setOf(2, ['a', 'b', 'c', 'a', 'd', 'b']);
    expect(set.names()).toEqual(['a', 'b']);
  });

  it('keeps a name when its input buffer changes', () => {
    const set = new NameSet(9);
    const bytes = encoder.encode('login');
    set.add(bytes, 0, 5);
    encoder.encodeInto('other', bytes);
    set.add(bytes, 0, 5);
    expect(set.names()).toEqual(['login', 'other']);
  });

  it('keeps a byte order mark, which is part of a name', () => {
    expect(setOf(9, ['\ufeffa', 'a']).names()).toEqual(['a', '\ufeffa']);
  });
});
