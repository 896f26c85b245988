import type { Zone } from './zone.ts';

/** Hours of the wall clock, each at the place that its last bits give: assembly/times.ts has the same list. */
const SLOTS = 256;
/** The hour, from 1970-01-01 00:00 on, and the seconds that the zone is ahead of UTC in it. */
const SLOT_WORDS = 2;
const HOUR_SECONDS = 3_600;

export const KNOWN_HOURS_BYTES: number = SLOTS * SLOT_WORDS * 4;

/** Makes a list without an hour at `at` of the words. */
export function forgetHours(words: Int32Array, at: number): void {
  // No hour has these last bits at this place.
  for (let slot = 0; slot < SLOTS; slot++) words[at + slot * SLOT_WORDS] = ~slot;
}

/** Takes the hour around a wall-clock time (seconds from 1970) into the list, if the zone has all of it, and has it once. */
export function learnHour(words: Int32Array, at: number, zone: Zone, seconds: number): void {
  const offset = zone.offsetOfHour(seconds);
  if (offset === undefined) return;
  const hour = Math.floor(seconds / HOUR_SECONDS);
  words.set([hour, offset], at + (hour & (SLOTS - 1)) * SLOT_WORDS);
}
