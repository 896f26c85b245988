import { codecOf } from './codec.ts';
import { DATE, DATETIME_BEYOND } from './forms.ts';
import { writeString } from './json-text.ts';
import { asText, castTo, matches } from './sql.ts';
import { sqlInstant } from './zone.ts';

/** A date has no zone. */
const cells = () => DATE | DATETIME_BEYOND;

/** `yyyy-MM-dd`, a day of the years 1 to 9999. */
export const DATE_CODEC = codecOf({
  type: 'date',
  cells,
  duckdb: () => 'DATE',
  writeValue: writeString,
  isJson: false,
  // No date has the year 0000; `TRY_CAST` refuses the other days that do not exist.
  sql: (expr) =>
    `CASE WHEN ${matches(expr, '[0-9]{4}-[0-9]{2}-[0-9]{2}')} AND NOT starts_with(${expr}, '0000') ` +
    `THEN TRY_CAST(${expr} AS DATE) END`,
  sqlValue: castTo('DATE'),
  nativeCells: cells,
  sqlText: asText,
  widenings: {
    datetime: (expr, zone) => {
      const wall = `CAST(${expr} AS TIMESTAMP)`;
      return zone === undefined ? wall : sqlInstant(wall, zone);
    },
  },
  widenedText: asText,
  jsonSchema: () => ({ type: ['string', 'null'], format: 'date' }),
});
