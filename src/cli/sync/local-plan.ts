import type { SourceConfig } from '../../config/source.ts';
import { deliveryOf } from '../../extract/plan/delivery.ts';
import { type Plan, planRun } from '../../extract/plan/plan.ts';
import type { PriorLoads } from '../../extract/prior-loads.ts';

/** The days given on the command line, which take precedence over the configuration. */
export interface WantedDays {
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly fullRefresh: boolean;
}

/** The plan of a run into a local target. */
export function planLocal(config: SourceConfig, prior: PriorLoads, wanted: WantedDays, now: number): Plan {
  return planRun({ settings: config, delivery: deliveryOf(config.delivery, false), ...wanted, prior, now });
}
