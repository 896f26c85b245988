import { headerColumns, LOG_ID, SERVER_DATETIME, UNIFIED_ID } from '../../cells/columns/groups.ts';
import type { ColumnType } from '../../cells/types/type.ts';
import { TYPES } from '../../cells/types/types.ts';
import { ITEM_POSITION } from '../../table/names.ts';
import type { AirbyteStream } from '../protocol/messages.ts';
import {
  KEY,
  nameWithHash,
  propertyNames,
  RESCUED,
  STREAM_NAMES,
  type StreamName,
  USER_PROFILES,
} from '../records/property-names.ts';

export interface TypedColumn {
  readonly source: string;
  readonly type: ColumnType;
}

const PRIMARY_KEY = {
  events: KEY,
  event_logs: LOG_ID,
  event_items: KEY,
  user_profiles: UNIFIED_ID,
} as const satisfies Record<StreamName, string>;

/** The streams of records with these columns. `asInstants`: datetimes are instants. */
export function streamsOf(columns: readonly TypedColumn[], asInstants: boolean): AirbyteStream[] {
  return STREAM_NAMES.map((name) => ({
    ...streamOf(name, columns, asInstants),
    supported_sync_modes: ['full_refresh', 'incremental'],
    source_defined_cursor: true,
    default_cursor_field: [SERVER_DATETIME],
    is_resumable: true,
  }));
}

/** The stream of profiles with these columns: a snapshot, which each sync sends whole. */
export const profilesStream = (columns: readonly TypedColumn[], asInstants: boolean): AirbyteStream => ({
  ...streamOf(USER_PROFILES, columns, asInstants),
  supported_sync_modes: ['full_refresh'],
  is_resumable: false,
});

function streamOf(name: StreamName, columns: readonly TypedColumn[], asInstants: boolean) {
  const names = propertyNames(name, headerColumns(columns.map((column) => column.source)));
  const shown = columns.flatMap((column, i) => {
    const property = names[i];
    return property === undefined ? [] : [[property, propertyOf(column, property, asInstants)]];
  });
  return {
    name,
    json_schema: {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      additionalProperties: true,
      properties: Object.fromEntries([...ownProperties(name), ...shown]),
    },
    source_defined_primary_key: [[PRIMARY_KEY[name]]],
  };
}

/** The schema of a property; if its name had to change, a description names the column of the export. */
function propertyOf({ source, type }: TypedColumn, property: string, asInstants: boolean): object {
  const schema = schemaOf(type, asInstants);
  if (!property.endsWith(nameWithHash('', source))) return schema;
  const description = `Column ${JSON.stringify(source)} of the export: another has the same name but for upper and lower case.`;
  return { ...schema, description };
}

const schemaOf = (type: ColumnType, asInstants: boolean): object => TYPES[type].jsonSchema(asInstants);

function ownProperties(stream: StreamName): [string, object][] {
  const rescued: [string, object] = [
    RESCUED,
    {
      type: ['object', 'null'],
      additionalProperties: true,
      description: 'Raw text of the cells that did not fit their type, by the name of their column.',
    },
  ];
  if (stream === 'event_logs') return [rescued];
  const key: [string, object] = [
    KEY,
    { ...schemaOf('string', false), description: 'Key of the row: its detail log id, numbered where that repeats.' },
  ];
  if (stream === 'events' || stream === USER_PROFILES) return [key, rescued];
  const position = { ...schemaOf('long', false), description: 'Position of the item in its event, as exported.' };
  return [key, rescued, [ITEM_POSITION, position]];
}
