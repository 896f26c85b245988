import { describe, expect, it } from 'vitest';
import { NameSet } from '../../../src/schema/name-set.ts';

const encoder = new TextEncoder();

function setOf(most: number, names: readonly string[]): NameSet {
  const set = new NameSet(most);
  for (const name of names) {
    const bytes = encoder.encode(`:${name}:`);
    set.add(bytes, 1, bytes.length - 1);
  }
  return set;
}

describe('the set of names', () => {
  it('has each once, sorted, in whatever order and however often they come', () => {
    expect(setOf(9, ['b', 'a', 'a', 'b', '한', 'b', 'c', 'a']).names()).toEqual(['a', 'b', 'c', '한']);
    expect(setOf(9, []).names()).toEqual([]);
  });

  it('tells apart names of one length that differ in their first bytes alone, and knows each again', () => {
    const names = ['a_purchase', 'b_purchase', 'c_purchase', 'abc', 'bbc', 'x', 'xx'];
    expect(setOf(99, [...names, ...names, ...names].reverse()).names()).toEqual([...names].sort());
  });

  it('leaves out what comes when it is full, and still knows what it has', () => {
    const set = setOf(2, ['a', 'b', 'c', 'a', 'd', 'b']);
    expect(set.names()).toEqual(['a', 'b']);
  });

  it('keeps a name when the bytes that it came in change', () => {
    const set = new NameSet(9);
    const bytes = encoder.encode('login');
    set.add(bytes, 0, 5);
    encoder.encodeInto('other', bytes);
    set.add(bytes, 0, 5);
    expect(set.names()).toEqual(['login', 'other']);
  });

  it('keeps a byte order mark, which is a part of a name', () => {
    expect(setOf(9, ['\ufeffa', 'a']).names()).toEqual(['a', '\ufeffa']);
  });
});
