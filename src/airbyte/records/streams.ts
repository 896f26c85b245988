import {
  DETAIL_LOG_ID,
  type HeaderColumn,
  LOG_ID,
  REQUIRED_COLUMNS,
  SERVER_DATETIME,
  UNIFIED_ID,
} from '../../cells/header.ts';
import { codecOf } from '../../cells/types/column-types.ts';
import { ITEM_POSITION } from '../../table/column-names.ts';
import { isItemGroup } from '../../table/tables.ts';
import type { AirbyteStream } from '../protocol/messages.ts';

export const KEY_PROPERTY = '_key';
export const RESCUED_PROPERTY = '_rescued';
/** The columns that every row of events fills. A row may have no id, and name nobody. */
const FILLED_COLUMNS = REQUIRED_COLUMNS.filter((name) => ![UNIFIED_ID, LOG_ID, DETAIL_LOG_ID].includes(name));

export type StreamName = 'events' | 'event_logs' | 'event_items' | 'user_profiles';

/** The rows of the export that a stream has. */
export type RowSelection = 'every_row' | 'row_per_event' | 'rows_with_item';

/** What a stream of this source is, whatever its configuration. */
interface StreamDefinition {
  readonly selection: RowSelection;
  /** True for a column of the export that it has. */
  hasColumn(column: HeaderColumn): boolean;
  readonly primaryKey: string;
  /** Those that every row fills. One of them must be sent, since a platform drops empty records. */
  readonly filledProperties: readonly string[];
  /** The properties that are no column of the export, with their schemas. */
  readonly addedProperties: Readonly<Record<string, object>>;
  /** What the catalog says of its syncs: by days with a cursor, or whole as a snapshot. */
  readonly syncCapabilities: Omit<AirbyteStream, 'name' | 'json_schema' | 'source_defined_primary_key'>;
}

const RESCUED_SCHEMA = {
  [RESCUED_PROPERTY]: {
    type: ['object', 'null'],
    additionalProperties: true,
    description: 'Raw text of the cells that did not fit their type, by the name of their column.',
  },
};

const keyAndRescuedSchemas = (id: string) => ({
  [KEY_PROPERTY]: {
    ...codecOf('string', undefined).jsonSchema,
    description: `Key of the row: its ${id}, numbered where that repeats.`,
  },
  ...RESCUED_SCHEMA,
});

const BY_DAYS: StreamDefinition['syncCapabilities'] = {
  supported_sync_modes: ['full_refresh', 'incremental'],
  source_defined_cursor: true,
  default_cursor_field: [SERVER_DATETIME],
  is_resumable: true,
};

export const STREAMS: Readonly<Record<StreamName, StreamDefinition>> = {
  events: {
    selection: 'every_row',
    hasColumn: () => true,
    primaryKey: KEY_PROPERTY,
    filledProperties: [KEY_PROPERTY, ...FILLED_COLUMNS],
    addedProperties: keyAndRescuedSchemas('detail log id'),
    syncCapabilities: BY_DAYS,
  },
  event_logs: {
    selection: 'row_per_event',
    hasColumn: ({ group }) => !isItemGroup(group),
    primaryKey: LOG_ID,
    filledProperties: [LOG_ID, ...FILLED_COLUMNS],
    addedProperties: RESCUED_SCHEMA,
    syncCapabilities: BY_DAYS,
  },
  event_items: {
    selection: 'rows_with_item',
    hasColumn: ({ group }) => isItemGroup(group) || group === 'unified_id' || group === 'system',
    primaryKey: KEY_PROPERTY,
    filledProperties: [KEY_PROPERTY, ...FILLED_COLUMNS],
    addedProperties: {
      ...keyAndRescuedSchemas('detail log id'),
      [ITEM_POSITION]: {
        ...codecOf('long', undefined).jsonSchema,
        description: 'Position of the item in its event, as exported.',
      },
    },
    syncCapabilities: BY_DAYS,
  },
  user_profiles: {
    selection: 'every_row',
    hasColumn: () => true,
    primaryKey: UNIFIED_ID,
    filledProperties: [KEY_PROPERTY, UNIFIED_ID],
    addedProperties: keyAndRescuedSchemas('unified id'),
    syncCapabilities: { supported_sync_modes: ['full_refresh'], is_resumable: false },
  },
};

/** The stream of the export of profiles. `discover` lists it behind those of events. */
export const PROFILE_STREAM = 'user_profiles';
export const EVENT_STREAMS: readonly StreamName[] = ['events', 'event_logs', 'event_items'];

/** What the records of a stream have. */
export interface StreamSchemas {
  readonly name: StreamName;
  /** JSON schemas of the properties that are sent; undefined for one that only the configured primary key names. */
  readonly schemas: ReadonlyMap<string, unknown>;
}
