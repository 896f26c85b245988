import type { Fault } from './faults/fault.ts';

/** Everything the service may do one way or another, fully populated. Keys, defaults and bounds: schemas/scenario.json; meanings: docs/simulator.md. */
export interface Scenario {
  readonly days: {
    readonly to_date_inclusive: boolean;
    readonly single_days: 'as_ranges' | 'whole' | 'empty' | 'error';
    readonly selects_on: 'server' | 'correction' | 'event';
    readonly zone_hours: number;
    readonly cell_zone_hours: number;
    readonly future: 'empty' | 'error';
    readonly to_date_omitted: 'today' | 'from_date';
    readonly history_days: number;
  };
  readonly columns: {
    readonly event_name: 'event_name' | 'df_event_name';
    readonly type_drift: boolean;
    readonly hostile_names: boolean;
    readonly extra: number;
    readonly own: readonly {
      readonly name: string;
      readonly values: readonly string[];
      readonly per: 'row' | 'day';
      readonly share: number;
      readonly days?: readonly string[];
    }[];
  };
  readonly rows: {
    readonly per_day: number;
    readonly variation: number;
    readonly by_day: Readonly<Record<string, number>>;
    readonly order: 'time' | 'reverse' | 'shuffled' | 'items_apart';
    readonly late: {
      readonly share: number;
      readonly hours: number;
    };
    readonly corrected: {
      readonly share: number;
      readonly hours: number;
    };
    readonly withdrawn: {
      readonly share: number;
      readonly hours: number;
    };
    readonly longest_delay_hours: number;
    readonly at_day_end: boolean;
    readonly users: number;
    readonly unnamed_share: number;
    readonly anonymous_share: number;
    readonly of_deleted_profiles: 'kept' | 'removed';
  };
  readonly ids: {
    readonly first_item: 0 | 1;
    readonly duplicate_share: number;
    readonly carried_share: number;
    readonly reused_share: number;
    readonly missing_share: number;
    readonly repeat_share: number;
    readonly other_item_events: 'single' | 'repeat_id' | 'numbered';
  };
  readonly format: {
    readonly framing: 'chunked' | 'length';
    readonly final_newline: boolean;
    readonly gzip: 'never' | 'accepted' | 'always';
    readonly bom: boolean;
    readonly crlf: boolean;
    readonly content_type: string;
  };
  readonly limits: {
    readonly exports_per_hour: number;
    readonly concurrent_exports: number;
    readonly deletions_per_minute: number;
    readonly window: 'fixed' | 'sliding';
    readonly failed_exports_count: boolean;
    readonly concurrent_remaining: 'actual' | 'zero';
    readonly headers: 'x-ratelimit' | 'X-Rate-Limit' | 'none';
    readonly headers_on: 'all' | '429';
    readonly reset: 'ms' | 's' | 'absent' | 'nonsense' | 'past';
    readonly retry_after: boolean;
  };
  readonly answers: {
    readonly unknown_service: '401' | '400' | 'empty';
    readonly known_events_only: boolean;
    readonly date_header: boolean;
    readonly date_skew_s: number;
  };
  readonly deletions: {
    readonly success_status: number;
    readonly failure_status: '200' | 'by_code';
    readonly over_limit: '429' | '40401';
    readonly known_ids?: readonly string[];
    readonly unmatched: '20000' | '40402' | '40403' | '40000';
    readonly codes: Readonly<Record<string, string>>;
  };
  readonly too_big: {
    readonly days: readonly string[];
    readonly longest_days?: number;
    readonly most_rows?: number;
    readonly unless_events: boolean;
    readonly status: number;
  };
  readonly faults: readonly Fault[];
}
