import { describe, expect, it } from 'vitest';
import { type ColumnType, codecOf, fits, narrowestType, TYPES } from '../../../src/cells/types/column-types.ts';
import { NULL_TEXT } from '../../../src/cells/types/forms.ts';
import { zoneOf } from '../../../src/cells/types/zone.ts';
import { FORM_BITS, formNames } from '../../support/forms.ts';

/** The bits that decide a type. */
const CLASSES = Object.values(FORM_BITS).filter((bit) => bit !== NULL_TEXT);
const SETS = CLASSES.reduce<number[]>((sets, bit) => sets.concat(sets.map((set) => set | bit)), [0]);

const widensTo = (from: ColumnType, to: ColumnType | undefined) =>
  from === to || TYPES[from].widerTypes.some((type) => type === to);

describe.each([
  ['without a timezone', undefined],
  ['with a timezone', zoneOf('UTC')],
])('the type of a column, %s', (_, zone) => {
  it('is one that holds all cells seen', () => {
    const wrong = SETS.slice(1).filter((set) => {
      const type = narrowestType(set, zone);
      return type === undefined || !fits(codecOf(type, zone), set);
    });
    expect(wrong.map(formNames)).toEqual([]);
  });

  it('stays or widens with each further class of cells, so that the order of days does not matter', () => {
    const types = new Map(SETS.map((set) => [set, narrowestType(set, zone)]));
    const wrong = SETS.flatMap((set) => {
      const type = types.get(set);
      if (type === undefined) return [];
      const after = CLASSES.map((bit) => ({ bit, to: types.get(set | bit) }));
      return after
        .filter(({ to }) => !widensTo(type, to))
        .map(({ bit, to }) => `${formNames(set)}: ${type}, and with ${formNames(bit)}: ${to}`);
    });
    expect(wrong.slice(0, 10)).toEqual([]);
  });
});
