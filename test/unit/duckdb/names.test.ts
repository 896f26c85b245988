import { describe, expect, it } from 'vitest';
import { assignItemNames, assignNames, foldName, OWN_NAMES } from '../../../src/table/names.ts';

describe('table names', () => {
  it('are the names of the export unless they are taken', () => {
    expect(assignNames([], ['select', 'a.b', 'a "b"', '한글', 'rowid'])).toEqual([
      'select',
      'a.b',
      'a "b"',
      '한글',
      'rowid',
    ]);
  });

  it('have a suffix in the order of their bytes, in any order of columns', () => {
    expect(assignNames([], ['sum', 'SUM', 'Sum'])).toEqual(['sum_3', 'SUM', 'Sum_2']);
    expect(assignNames([], ['Sum', 'sum', 'SUM'])).toEqual(['Sum_2', 'sum_3', 'SUM']);
  });

  it('ignore case beyond ASCII', () => {
    expect(assignNames([], ['Ärger', 'ärger', 'É', 'é'])).toEqual(['Ärger', 'ärger_2', 'É', 'é_2']);
  });

  it('are one name when Spark takes them for one', () => {
    const pairs = ['ς Σ', 'σ ς', 'ı I', 'i ı', 'İ i', 'ſ s', 'S ſ', '\u212a k', 'µ μ', 'ΟΔΟΣ οδοσ', 'i\u0307 İ'];
    for (const [a, b] of pairs.map((pair) => pair.split(' '))) {
      expect({ a, b, isOne: foldName(a) === foldName(b) }).toEqual({ a, b, isOne: true });
    }
    expect(assignNames([], ['name', 'ſum', 'sum', 'straße', 'STRASSE'])).toEqual([
      'name',
      'ſum_2',
      'sum',
      'straße',
      'STRASSE',
    ]);
  });

  it('skip taken and reserved names', () => {
    expect(assignNames([...OWN_NAMES, 'a', 'A_2'], ['A', '_KEY', 'event_date'])).toEqual([
      'A_3',
      '_KEY_2',
      'event_date_2',
    ]);
  });

  it('of equal columns are told apart in their order', () => {
    expect(assignNames([], ['x', 'x', 'x_2'])).toEqual(['x', 'x_2', 'x_2_2']);
  });

  it('replace an empty name and U+0000', () => {
    expect(assignNames([], ['', 'a\0b'])).toEqual(['column', 'a\ufffdb']);
  });
});

describe('names of item columns', () => {
  it('lose their prefix unless the name is taken', () => {
    const taken = [...OWN_NAMES, 'df_unified_id'];
    const names = ['df_items_color', 'df_items_df_unified_id', 'df_items_item_position', 'df_items_COLOR_2'];
    expect(assignItemNames(taken, names, 'df_items_')).toEqual([
      'color',
      'df_items_df_unified_id',
      'df_items_item_position',
      'COLOR_2',
    ]);
  });

  it('are unique, even when the prefix was kept', () => {
    const names = ['df_items_df_unified_id', 'df_items_df_items_df_unified_id'];
    expect(assignItemNames(['df_unified_id'], names, 'df_items_')).toEqual([
      'df_items_df_unified_id',
      'df_items_df_items_df_unified_id',
    ]);
  });
});
