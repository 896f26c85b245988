import validateScenario from '../../schemas/scenario.validator';
import { configError } from '../base/errors.ts';
import { problemTexts } from '../base/validator.ts';

export type Operation = 'export' | 'profiles' | 'delete';

/** An answer in place of the usual one. Without `status` and `code` it is the usual one, late. */
export interface PlannedAnswer {
  readonly operation: Operation;
  readonly nth?: readonly number[];
  readonly external_id?: string;
  readonly latency_ms?: number;
  readonly status?: number;
  readonly retry_after_s?: number;
  readonly code?: string;
}

/** The content of schemas/scenario.json, with every default filled in. */
export interface Scenario {
  readonly service_id: string;
  readonly export_token: string;
  readonly import_token: string;
  readonly events_per_day: number;
  readonly exports_per_hour?: number;
  readonly answers: readonly PlannedAnswer[];
}

/** Parses a scenario; absent keys have their defaults. Throws a configuration error that names every problem. */
export function parseScenario(source: unknown): Scenario {
  // The validation fills in the defaults.
  const value: unknown = structuredClone(source);
  if (validateScenario<Scenario>(value)) return value;
  const problems = problemTexts(validateScenario).join('; ');
  throw configError(`The scenario cannot be used: ${problems}. See docs/simulator.md.`);
}
