// This folder: ready views and one macro over the events, in the schema `analytics` of a DuckDB file, in plain SQL. The dbt
// project under examples/ is written from the same models.

import { dailyActive, monthlyActive, weeklyActive } from './active.ts';
import { eventDictionary } from './event-dictionary.ts';
import { funnel } from './funnel.ts';
import type { Model } from './model.ts';
import { purchaseItems, purchases } from './purchases.ts';
import { retention } from './retention.ts';
import { sessions } from './sessions.ts';
import { users } from './users.ts';

/** In the order in which they are listed. */
export const MODELS: readonly Model[] = [
  sessions,
  users,
  purchases,
  purchaseItems,
  dailyActive,
  weeklyActive,
  monthlyActive,
  retention,
  eventDictionary,
  funnel,
];
