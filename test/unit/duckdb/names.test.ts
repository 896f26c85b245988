import { describe, expect, it } from 'vitest';
import { assignItemNames, assignNames, foldName, OWN_NAMES } from '../../../src/table/names.ts';

describe('table names', () => {
  it('are the names of the export where nothing else has them', () => {
    expect(assignNames([], ['select', 'a.b', 'a "b"', '한글', 'rowid'])).toEqual([
      'select',
      'a.b',
      'a "b"',
      '한글',
      'rowid',
    ]);
  });

  it('get a suffix in order of their bytes, whatever the order they come in [R26]', () => {
    expect(assignNames([], ['sum', 'SUM', 'Sum'])).toEqual(['sum_3', 'SUM', 'Sum_2']);
    expect(assignNames([], ['Sum', 'sum', 'SUM'])).toEqual(['Sum_2', 'sum_3', 'SUM']);
  });

  it('fold case beyond ASCII', () => {
    expect(assignNames([], ['Ärger', 'ärger', 'É', 'é'])).toEqual(['Ärger', 'ärger_2', 'É', 'é_2']);
  });

  it('are one name where Spark takes them for one [R26]', () => {
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

  it('skip what is taken and what is ours [R26]', () => {
    expect(assignNames([...OWN_NAMES, 'a', 'A_2'], ['A', '_KEY', 'event_date'])).toEqual([
      'A_3',
      '_KEY_2',
      'event_date_2',
    ]);
  });

  it('tell equal names apart, in their own order', () => {
    expect(assignNames([], ['x', 'x', 'x_2'])).toEqual(['x', 'x_2', 'x_2_2']);
  });

  it('stand in for an empty name and for U+0000', () => {
    expect(assignNames([], ['', 'a\0b'])).toEqual(['column', 'a\ufffdb']);
  });
});

describe('names of item columns', () => {
  it('lose their prefix, but for a collision', () => {
    const taken = [...OWN_NAMES, 'df_unified_id'];
    const names = ['df_items_color', 'df_items_df_unified_id', 'df_items_item_position', 'df_items_COLOR_2'];
    expect(assignItemNames(taken, names, 'df_items_')).toEqual([
      'color',
      'df_items_df_unified_id',
      'df_items_item_position',
      'COLOR_2',
    ]);
  });

  it('never collide, even where the prefix was kept', () => {
    const names = ['df_items_df_unified_id', 'df_items_df_items_df_unified_id'];
    expect(assignItemNames(['df_unified_id'], names, 'df_items_')).toEqual([
      'df_items_df_unified_id',
      'df_items_df_items_df_unified_id',
    ]);
  });
});
