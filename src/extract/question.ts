import { createHash } from 'node:crypto';
import type { Day } from '../base/days.ts';
import type { Condition } from '../config/source.ts';
import type { ExportQuestion } from '../service/export/request.ts';

/** What an extraction asks for, days aside. */
export interface Filters {
  readonly events: readonly string[];
  readonly eventsCondition: Condition;
  readonly properties: readonly string[];
  readonly propertiesCondition: Condition;
}

export interface QuestionSource extends Filters {
  readonly baseUrl: string;
  readonly serviceId: string;
}

/** `question` as the state keeps it (S6), and the part of it that names the service. Hex SHA-256 each. */
export interface QuestionHashes {
  readonly question: string;
  readonly service: string;
}

export function hashesOf(source: QuestionSource): QuestionHashes {
  const service = ['dfinery', source.baseUrl, source.serviceId];
  return { service: sha256(service), question: sha256([...service, ...canonical(source)]) };
}

/** Two spellings of the same filter are one question: order, repetitions and names without effect do not count. */
function canonical(filters: Filters): unknown[] {
  return [side(filters.events, filters.eventsCondition), side(filters.properties, filters.propertiesCondition)];
}

function side(names: readonly string[], condition: Condition): unknown {
  if (condition === 'all' || names.length === 0) return ['all'];
  return [condition, [...new Set(names)].sort()];
}

export function filtersOf(source: Filters): Filters {
  const { events, eventsCondition, properties, propertiesCondition } = source;
  return { events, eventsCondition, properties, propertiesCondition };
}

export const exportQuestion = (filters: Filters, from: Day, to: Day): ExportQuestion => ({ ...filters, from, to });

/** One text per export that can be asked for; equal texts mean equal answers, time aside. */
export function keyOf(question: ExportQuestion): string {
  return sha256([question.from, question.to, ...canonical(question)]);
}

export const sha256 = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('hex');
