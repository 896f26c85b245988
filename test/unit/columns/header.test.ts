import { describe, expect, it } from 'vitest';
import { headerColumns, missingColumns } from '../../../src/cells/header.ts';

const SYSTEM = [
  'df_unified_id',
  'df_api_version',
  'df_event_name',
  'df_server_datetime',
  'df_correction_datetime',
  'df_event_detail_log_id',
  'df_event_log_id',
];

describe('the group of a column', () => {
  it.each([
    ['df_unified_id', 'unified_id', 'string'],
    ['df_api_version', 'system', 'string'],
    ['event_name', 'system', 'string'],
    ['df_server_datetime', 'system', 'datetime'],
    ['df_event_datetime', 'standard', 'datetime'],
    ['df_total_purchase_amount', 'standard', 'double'],
    ['df_order_id', 'standard', 'string'],
    ['df_items_df_price', 'standard_item', 'double'],
    ['df_items_df_quantity', 'standard_item', 'long'],
    ['df_items_df_category6', 'custom_item', undefined],
    ['df_items_df_new', 'custom_item', undefined],
    ['df_items_', 'custom', undefined],
    ['df_items', 'custom', undefined],
    ['df_unknown', 'custom', undefined],
    ['DF_KEYWORD', 'custom', undefined],
    ['__proto__', 'custom', undefined],
    ['', 'custom', undefined],
  ] as const)('of %j is %s', (name, group, type) => {
    expect(headerColumns([name])[0]).toMatchObject({ group, declaredType: type });
  });

  it('of event_name is custom beside df_event_name, on either side', () => {
    for (const header of [
      ['event_name', 'df_event_name'],
      ['df_event_name', 'event_name'],
    ]) {
      const columns = new Map(headerColumns(header).map((column) => [column.headerName, column]));
      expect(columns.get('event_name')).toMatchObject({
        source: 'event_name',
        group: 'custom',
        declaredType: undefined,
      });
      expect(columns.get('df_event_name')).toMatchObject({ group: 'system', declaredType: 'string' });
    }
    expect(headerColumns(['event_name', 'a', 'event_name'])).toMatchObject([
      { source: 'df_event_name', occurrence: 1, group: 'system', declaredType: 'string' },
      { source: 'a', occurrence: 1 },
      { source: 'event_name', occurrence: 1, group: 'custom', declaredType: undefined },
    ]);
  });

  it('is that of the known column for the first of equal names', () => {
    const columns = headerColumns(['df_keyword', 'a', 'df_keyword', 'df_items_df_price', 'df_items_df_price', 'a']);
    const groups = ['standard', 'custom', 'custom', 'standard_item', 'custom_item', 'custom'];
    expect(columns.map(({ group }) => group)).toEqual(groups);
    const none = undefined;
    expect(columns.map(({ declaredType }) => declaredType)).toEqual(['string', none, none, 'double', none, none]);
  });

  it('is required for the columns of every export', () => {
    expect(missingColumns(SYSTEM)).toEqual([]);
    expect(missingColumns(SYSTEM.map((name) => (name === 'df_event_name' ? 'event_name' : name)))).toEqual([]);
    for (const name of SYSTEM) expect(missingColumns(SYSTEM.filter((other) => other !== name))).toEqual([name]);
  });
});
