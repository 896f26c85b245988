import { addDays, type Day, dayAt, daysBetween, isDay } from '../../base/days.ts';
import { isObject } from '../../base/json.ts';
import { EVENT_KINDS } from '../data/event.ts';
import type { NameFilter, RowQuery } from '../data/row-query.ts';
import type { Scenario } from '../scenario.ts';

/** An export body, checked: the days as asked, and the query they come to. */
export interface ExportRequest {
  readonly from: Day;
  readonly to: Day;
  readonly query: RowQuery;
}

export type ExportError = 'invalid_parameter' | 'exceed_date_range_limit';

const CONDITIONS = ['all', 'include', 'exclude'] as const;

/** Reads an export body as the service would, or the reason for which it is refused. */
export function readExportRequest(body: unknown, scenario: Scenario, now: number): ExportRequest | ExportError {
  if (!isObject(body)) return 'invalid_parameter';
  const events = readFilter(body.events, body.events_condition_type, true);
  const properties = readFilter(body.properties, body.properties_condition_type, false);
  const today = dayAt(now, scenario.days.zone_hours);
  const dates = readDates(body, scenario, today);
  if (events === undefined || properties === undefined || dates === undefined) return 'invalid_parameter';
  if (scenario.answers.known_events_only && !areKnown(events)) return 'invalid_parameter';
  if (dates.from < addDays(today, -scenario.days.history_days)) return 'exceed_date_range_limit';
  const form = dates.from === dates.to ? scenario.days.single_days : 'as_ranges';
  if (form === 'error') return 'invalid_parameter';
  const isIncluded = form === 'as_ranges' ? scenario.days.to_date_inclusive : form === 'whole';
  const last = isIncluded ? dates.to : addDays(dates.to, -1);
  return { ...dates, query: { from: dates.from, last, events, properties, now } };
}

export const daysRequested = (request: ExportRequest): number => daysBetween(request.from, request.to) + 1;

function readFilter(names: unknown, condition: unknown, isRequired: boolean): NameFilter | undefined {
  const known = CONDITIONS.find((one) => one === (condition ?? (isRequired ? undefined : 'all')));
  if (known === undefined) return undefined;
  const list: unknown = names ?? [];
  if (!Array.isArray(list) || !list.every((name) => typeof name === 'string')) return undefined;
  return { condition: known, names: new Set(list) };
}

function readDates(body: Record<string, unknown>, scenario: Scenario, today: Day): { from: Day; to: Day } | undefined {
  const from = body.from_date;
  if (typeof from !== 'string' || !isDay(from)) return undefined;
  const omitted = scenario.days.to_date_omitted === 'today' && from <= today ? today : from;
  const to = body.to_date ?? omitted;
  if (typeof to !== 'string' || !isDay(to) || to < from) return undefined;
  return scenario.days.future === 'error' && to > today ? undefined : { from, to };
}

function areKnown(filter: NameFilter): boolean {
  return [...filter.names].every((name) => EVENT_KINDS.some((kind) => kind.name === name));
}
