// Dates and times without a zone of their own; src/cells/types/calendar.ts says what they are.

import { COLON, DOT, HYPHEN, SPACE, UPPER_T, ZERO } from '../src/base/ascii';
import { HOUR_SLOTS, HOURS_AT } from '../src/cells/csv/layout';
import { byteAt, isDigit } from './bytes';

/** Results of `parseTime`: no time, its form, or text that TypeScript must read. */
export const NO_TIME: i32 = 0;
export const DAY_FORM: i32 = 1;
export const DOT_FORM: i32 = 2;
export const DASH_FORM: i32 = 3;
export const UNKNOWN_FORM: i32 = 4;

const DATE_BYTES: i32 = 10;
const CLOCK_BYTES: i32 = 19;
const FRACTION_DIGITS: i32 = 6;
const DAY_SECONDS: f64 = 86_400;

/** The last time read: its day, from 1970-01-01 on; its second of that day; its microsecond of that second. */
let day: i32 = 0;
let second: i32 = 0;
export let micro: i32 = 0;

/** The last time read, in seconds from 1970-01-01 00:00 of its own wall clock. */
export function seconds(): f64 {
  return <f64>day * DAY_SECONDS + <f64>second;
}

const HOUR_SECONDS: i32 = 3_600;
const DAY_HOURS: i32 = 24;

/** True if the hour of the last time read is cached: the zone has it once. */
export function isKnownHour(): bool {
  const hour = day * DAY_HOURS + second / HOUR_SECONDS;
  return load<i32>(<usize>HOURS_AT + ((<usize>(hour & (HOUR_SLOTS - 1))) << 2)) === hour;
}

/** Two digits, or something negative. */
function two(at: usize): i32 {
  const high = byteAt(at) - ZERO;
  const low = byteAt(at + 1) - ZERO;
  return <u32>high <= 9 && <u32>low <= 9 ? high * 10 + low : -10_000;
}

/** How long a number of one or two digits is. */
function digitsAt(at: usize): usize {
  return isDigit(byteAt(at + 1)) ? 2 : 1;
}

/** One digit before something else, or two; something negative for anything else. */
function oneOrTwo(at: usize): i32 {
  if (digitsAt(at) === 2) return two(at);
  return isDigit(byteAt(at)) ? byteAt(at) - ZERO : -1;
}

/** Reads `length` bytes of text; what they hold is in `day`, `second` and `micro` where it has one of the forms. */
export function parseTime(from: usize, length: i32): i32 {
  if (length < DATE_BYTES) return NO_TIME;
  const century = two(from);
  const yearOfCentury = two(from + 2);
  if (century < 0 || yearOfCentury < 0) return NO_TIME;
  const year = century * 100 + yearOfCentury;
  if (year < 1) return NO_TIME;
  const separator = byteAt(from + 4);
  if (separator === DOT) return parseDot(year, from + 5, from + <usize>length);
  if (separator !== HYPHEN || byteAt(from + 7) !== HYPHEN) return NO_TIME;
  if (!setDay(year, two(from + 5), two(from + 8))) return NO_TIME;
  if (length > DATE_BYTES) return parseClock(from, length);
  second = 0;
  micro = 0;
  return DAY_FORM;
}

/** `M.d H:mm`; M, d and H of one or two digits. */
function parseDot(year: i32, from: usize, end: usize): i32 {
  const monthEnd = from + digitsAt(from);
  const dayAt = monthEnd + 1;
  const dayEnd = dayAt + digitsAt(dayAt);
  const hourAt = dayEnd + 1;
  const hourEnd = hourAt + digitsAt(hourAt);
  if (byteAt(monthEnd) !== DOT || byteAt(dayEnd) !== SPACE || byteAt(hourEnd) !== COLON) return NO_TIME;
  if (hourEnd + 3 !== end || !setDay(year, oneOrTwo(from), oneOrTwo(dayAt))) return NO_TIME;
  return setClock(oneOrTwo(hourAt), two(hourEnd + 1), 0) ? DOT_FORM : NO_TIME;
}

/** A day is read; behind it ` HH:mm:ss` or `THH:mm:ss`, and a fraction. */
function parseClock(from: usize, length: i32): i32 {
  if (length < CLOCK_BYTES || (byteAt(from + 10) !== SPACE && byteAt(from + 10) !== UPPER_T)) return NO_TIME;
  if (byteAt(from + 13) !== COLON || byteAt(from + 16) !== COLON) return NO_TIME;
  if (!setClock(two(from + 11), two(from + 14), two(from + 17))) return NO_TIME;
  if (length === CLOCK_BYTES) return DASH_FORM;
  const digits = length - CLOCK_BYTES - 1;
  if (byteAt(from + 19) !== DOT || digits === 0 || digits > FRACTION_DIGITS) return UNKNOWN_FORM;
  let fraction = 0;
  for (let i = 0; i < digits; i++) {
    const c = byteAt(from + <usize>(CLOCK_BYTES + 1 + i));
    if (!isDigit(c)) return UNKNOWN_FORM;
    fraction = fraction * 10 + c - ZERO;
  }
  for (let i = digits; i < FRACTION_DIGITS; i++) fraction *= 10;
  micro = fraction;
  return DASH_FORM;
}

function setDay(year: i32, month: i32, dayOfMonth: i32): bool {
  if (month < 1 || month > 12 || dayOfMonth < 1) return false;
  if (dayOfMonth > 28 && dayOfMonth > daysIn(year, month)) return false;
  day = daysFromCivil(year, month, dayOfMonth);
  return true;
}

function daysIn(year: i32, month: i32): i32 {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

function setClock(hour: i32, minute: i32, secondOfMinute: i32): bool {
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || secondOfMinute < 0 || secondOfMinute > 59) return false;
  second = (hour * 60 + minute) * 60 + secondOfMinute;
  micro = 0;
  return true;
}

/** Days from 1970-01-01 to a day of the years 1 to 9999. */
function daysFromCivil(year: i32, month: i32, dayOfMonth: i32): i32 {
  const y = month <= 2 ? year - 1 : year;
  const era = y / 400;
  const yearOfEra = y - era * 400;
  const dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + dayOfMonth - 1;
  return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468;
}
