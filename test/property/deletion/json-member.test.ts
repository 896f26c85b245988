import { describe, expect, it } from 'vitest';
import { membersOf, withMember } from '../../../src/erasure/input/json-member.ts';
import fc from '../../support/property.ts';

const object = fc.dictionary(fc.string({ unit: 'binary', maxLength: 8 }), fc.jsonValue());
const spaced = fc
  .tuple(object, fc.constantFrom(undefined, 1, '\t'))
  .map(([value, space]) => JSON.stringify(value, null, space));

describe('members of a JSON text', () => {
  it('are found at their position', () => {
    fc.assert(
      fc.property(spaced, (text) => {
        const value = JSON.parse(text);
        const found = membersOf(text);
        expect([...found.keys()].toSorted()).toEqual(Object.keys(value).toSorted());
        for (const [key, { from, to }] of found) {
          expect(JSON.stringify(JSON.parse(text.slice(from, to)))).toBe(JSON.stringify(value[key]));
        }
      }),
    );
  });

  it('are replaced without a change to the others', () => {
    fc.assert(
      fc.property(spaced, fc.constantFrom('destinationStats', '"', 'é'), (text, key) => {
        const before = JSON.parse(text);
        const after = JSON.parse(withMember(text, key, '{"n":[1]}'));
        expect(after[key]).toEqual({ n: [1] });
        expect({ ...after, [key]: null }).toEqual({ ...before, [key]: null });
      }),
    );
  });

  it('keep spellings that JSON.parse would lose', () => {
    const text = '{"a":1.0,"b":12345678901234567890,"c":"\\u0041","a\\u0062":-0}';
    expect(withMember(text, 'z', '1')).toBe(`${text.slice(0, -1)},"z":1}`);
    expect(withMember(text, 'ab', '1')).toBe(text.replace('-0', '1'));
    expect(withMember('{ }', 'z', '1')).toBe('{"z":1}');
  });
});
