import type { Day } from '../../base/days.ts';
import type { SourceConfig } from '../../config/source.ts';
import type { PriorLoads } from '../prior-loads.ts';
import type { Delivery } from './delivery.ts';

/** What a plan needs of the configuration. */
export type PlanSettings = Pick<
  SourceConfig,
  | 'baseUrl'
  | 'serviceId'
  | 'events'
  | 'eventsCondition'
  | 'properties'
  | 'propertiesCondition'
  | 'columnsDrop'
  | 'columnsHash'
  | 'hashKey'
  | 'startDate'
  | 'endDate'
  | 'windowDays'
  | 'lookbackDays'
  | 'settleHours'
  | 'toDateInclusive'
  | 'historyDays'
  | 'onGap'
>;

export interface PlanInput {
  readonly settings: PlanSettings;
  readonly delivery: Delivery;
  /** The consumer keeps every row that it is given: it neither merges by key nor removes rows. Default false. */
  readonly appends?: boolean | undefined;
  /** Exactly these days, both included, whatever the cursor says (`--from`, `--to`). */
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
  readonly fullRefresh?: boolean | undefined;
  /** Resumes at the state's cursor, where an earlier attempt stopped: without lookback, and a full refresh not from its start. */
  readonly resume?: boolean | undefined;
  readonly prior: PriorLoads;
  /** The machine's clock, ms since 1970. */
  readonly now: number;
}
