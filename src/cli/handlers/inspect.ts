import { configFailure, EXIT, messageOf } from '../../base/errors.ts';
import { editsOf } from '../../extract/session.ts';
import { type FileProfile, profileFile } from '../../sinks/sql/profile/profile.ts';
import { Zone } from '../../types/zone.ts';
import { flag, type Handler, text } from '../command.ts';
import { findSourceConfig } from '../configuration.ts';
import type { Context } from '../context.ts';
import { pinnedTypes } from '../sync/pinned.ts';
import { profileLines } from './profile-table.ts';

export const inspect: Handler = async (options, context) => {
  const file = text(options, 'file') ?? '';
  const config = findSourceConfig(text(options, 'config'), context);
  const profile = await profileFile({
    edits: config && editsOf(config),
    file,
    timezone: zoneOption(text(options, 'timezone')),
    pinned: pinnedTypes(text(options, 'schema')),
    clock: context.clock,
    signal: context.signal,
  });
  if (profile.unlisted.length > 0) {
    const names = profile.unlisted.join(', ');
    context.logger.warn('columns.unseen', `columns_drop and columns_hash name what ${file} has not: ${names}.`);
  }
  if (profile.missing.length > 0) {
    const names = profile.missing.join(', ');
    context.logger.warn('inspect.missing', `${file} lacks columns that every export has: ${names}.`);
  }
  if (flag(options, 'json')) context.terminal.result(JSON.stringify(asJson(file, profile)));
  else print(file, profile, context);
  return EXIT.done;
};

function zoneOption(name: string | undefined): string | undefined {
  if (name === undefined) return undefined;
  try {
    return new Zone(name).name;
  } catch (error) {
    throw configFailure(`--timezone is ${JSON.stringify(name)}, wanted an IANA name such as Asia/Seoul.`, {
      cause: error,
      internal: messageOf(error),
    });
  }
}

function asJson(file: string, profile: FileProfile) {
  return {
    v: 1,
    file,
    rows: profile.rows,
    bytes: profile.bytes,
    final_newline: profile.finalNewline,
    invalid_utf8: { cells: profile.invalidUtf8.cells, first: profile.invalidUtf8.first ?? null },
    missing_columns: profile.missing,
    repeated_ids: profile.repeatedIds,
    rows_without_id: profile.missingIds,
    rescued_cells: rescuedCells(profile),
    columns: profile.columns.map(({ filled, ...column }) => ({
      ...column,
      filled,
      fill_rate: profile.rows === 0 ? 0 : filled / profile.rows,
    })),
  };
}

const rescuedCells = ({ columns }: FileProfile): number => columns.reduce((sum, column) => sum + column.rescued, 0);
const count = (n: number, one: string): string => `${n.toLocaleString('en-US')} ${one}${n === 1 ? '' : 's'}`;

function print(file: string, profile: FileProfile, { terminal }: Context): void {
  const mb = (profile.bytes / 1e6).toFixed(1);
  terminal.result(`${file}: ${count(profile.rows, 'row')}, ${count(profile.columns.length, 'column')}, ${mb} MB`);
  for (const line of ['', ...profileLines(profile, terminal.columns)]) terminal.result(line);
  const notes = notesOf(profile);
  for (const line of notes.length > 0 ? ['', ...notes] : []) terminal.result(line);
}

function notesOf(profile: FileProfile): string[] {
  const { cells, first } = profile.invalidUtf8;
  const where = first === undefined ? '' : `, the first in row ${first.row}, column ${first.column}`;
  const rescued = profile.columns.filter((column) => column.rescued > 0);
  const notes = [
    rescued.length > 0 &&
      `${count(rescuedCells(profile), 'cell')} would be rescued: ${rescued.map((c) => `${c.source} (${c.type})`).join(', ')}.`,
    profile.repeatedIds > 0 &&
      `${count(profile.repeatedIds, 'row')} with an id that an earlier row has: kept, under _key with #2, #3…`,
    profile.missingIds > 0 && `${count(profile.missingIds, 'row')} without an id: kept, under a hash of the cells.`,
    cells > 0 && `${count(cells, 'cell')} not valid UTF-8${where}: kept, with U+FFFD in place of the bad bytes.`,
    !profile.finalNewline && 'The last row has no line end: perhaps the file was cut there.',
  ];
  return notes.filter((note): note is string => note !== false);
}
