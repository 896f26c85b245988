import { secretFrom } from '../../base/env.ts';
import { configFailure, transientFailure } from '../../base/errors.ts';
import { type Secret, Secret as SecretText } from '../../base/secrets.ts';
import { rowsFromFile } from '../../deletion/input/id-list.ts';
import type { Ledger } from '../../deletion/ledger/ledger.ts';
import { purgeSpools, sweepRunFolders } from '../../extract/spool/run-folder.ts';
import { foreignSpoolFolders, spoolFolders } from '../../extract/spool/spool.ts';
import { UNIFIED_ID } from '../../schema/groups.ts';
import { HashKey } from '../../schema/hash-key.ts';
import type { PeopleFound, PeopleQuery, PlaceOptions, PurgeTarget } from '../../sinks/target.ts';
import { isPurgeTarget, TARGETS } from '../../sinks/targets.ts';
import { checkSuppression, suppress } from '../../suppression/append.ts';
import { type Options, shownOption, text } from '../command.ts';
import type { Context } from '../context.ts';
import { lockWait, spoolDirOption } from '../maintenance.ts';
import { purgePlaces } from './places.ts';

/** The place to purge, and how people are found there. */
export interface PurgeRequest {
  readonly target: PurgeTarget;
  readonly path: string;
  readonly column: string | undefined;
  readonly mapping: string | undefined;
  readonly hashKey: HashKey | undefined;
  readonly suppressionFile: string | undefined;
  readonly suppressionKey: Secret | undefined;
  readonly spoolDir: string;
  readonly lockWaitMs: number;
}

/** Reads `--purge KIND PATH` and what belongs to it; undefined when nothing is to be purged. */
export function purgeRequest(options: Options, context: Context): PurgeRequest | undefined {
  const given = Array.isArray(options.purge) ? options.purge.map(String) : [];
  if (given.length === 0) return nothingToPurge(options);
  const { env, redactor } = context;
  const [name, path] = given;
  const target = TARGETS.filter(isPurgeTarget).find((one) => one.name === name);
  if (target === undefined || path === undefined) throw configFailure(`--purge needs ${purgePlaces('"')}.`);
  const [column, mapping] = [text(options, 'purgeColumn'), text(options, 'mapping')];
  if ((column === undefined) === (mapping === undefined)) {
    throw configFailure('--purge needs exactly one of --purge-column and --mapping, to find the people there.');
  }
  const suppressionFile = text(options, 'suppressionFile');
  const key = secretFrom(env, 'DFINERY_SUPPRESSION_KEY');
  if (suppressionFile !== undefined && key === undefined) {
    throw configFailure(
      '--suppression-file needs the key in DFINERY_SUPPRESSION_KEY (or the file that DFINERY_SUPPRESSION_KEY_FILE names).',
    );
  }
  const suppressionKey = key === undefined ? undefined : new SecretText(key);
  redactor.add(suppressionKey);
  if (suppressionFile !== undefined && suppressionKey) checkSuppression(suppressionFile, suppressionKey);
  const spoolDir = spoolDirOption(options, env);
  const lockWaitMs = lockWait(options);
  return {
    target,
    path,
    column,
    mapping,
    hashKey: hashKey(context),
    suppressionFile,
    suppressionKey,
    spoolDir,
    lockWaitMs,
  };
}

function hashKey({ env, redactor }: Context): HashKey | undefined {
  const found = secretFrom(env, 'DFINERY_HASH_KEY');
  const key = found === undefined ? undefined : new SecretText(found);
  redactor.add(key);
  return key && new HashKey(key);
}

function nothingToPurge(options: Options): undefined {
  const without = ['suppressionFile', 'mapping', 'purgeColumn'].find((name) => text(options, name) !== undefined);
  if (without === undefined) return undefined;
  throw configFailure(`${shownOption(without)} needs --purge: people are looked up in what was loaded.`);
}

/** The people behind these external IDs, looked up before anything is deleted. */
export function resolvePeople(request: PurgeRequest, ids: readonly string[], context: Context): Promise<PeopleFound> {
  return queryOf(request, ids).then((query) => request.target.people(request.path, query, optionsOf(request, context)));
}

async function queryOf({ column, mapping, hashKey }: PurgeRequest, ids: readonly string[]): Promise<PeopleQuery> {
  return {
    ids,
    column,
    mapping: mapping === undefined ? undefined : await readMapping(mapping, new Set(ids)),
    hashKey,
  };
}

/** A CSV or JSON Lines file with the columns external_id and df_unified_id. */
async function readMapping(path: string, ids: ReadonlySet<string>): Promise<Map<string, string[]>> {
  const mapping = new Map<string, string[]>();
  for await (const [id, person] of rowsFromFile(path, ['external_id', UNIFIED_ID])) {
    if (typeof id !== 'string' || !ids.has(id) || typeof person !== 'string' || person === '') continue;
    mapping.set(id, [...(mapping.get(id) ?? []), person]);
  }
  return mapping;
}

/** Checks before any deletion that the purge can succeed, and warns of tables that it does not touch. Throws Failure. */
export async function checkPurge(request: PurgeRequest, ids: readonly string[], context: Context): Promise<void> {
  const { target, path, spoolDir } = request;
  const { foreignTables } = await target.checkPurge(path, await queryOf(request, ids), optionsOf(request, context));
  if (foreignTables.length > 0) {
    context.logger.warn(
      'purge.others',
      `${path} also has tables that are not ours (${foreignTables.join(', ')}): they stay as they are, and may name the people.`,
      { tables: foreignTables.join(', ') },
    );
  }
  const folders = await foreignSpoolFolders(spoolDir);
  if (folders.length > 0) {
    context.logger.warn(
      'purge.spools',
      `Spool folders of other users are out of reach and may name the people: ${folders.join(', ')}.`,
      { folders: folders.join(', ') },
    );
  }
}

/** Purges the spools and the target, and keeps the people on the suppression list; each count goes into the ledger. */
export async function purge(
  request: PurgeRequest,
  ids: readonly string[],
  ledger: Pick<Ledger, 'purge'>,
  context: Context,
): Promise<object> {
  const { target, path, spoolDir } = request;
  await purgeSpools(await spoolFolders(spoolDir), context.clock.now());
  await sweepRunFolders(spoolDir, context.clock.now());
  const done = await target.purge(path, await queryOf(request, ids), {
    ...optionsOf(request, context),
    onFound: (found) => suppressPeople(request, found, context),
  });
  const counts = {
    people: done.found.people,
    rows: done.rowsRemoved,
    files_rewritten: done.files.length,
    bytes_before: done.bytesBefore,
    bytes_after: done.bytesAfter,
  };
  await ledger.purge(`${target.name} ${path}`, counts);
  if (done.unreached.length > 0) throw transientFailure(done.unreached.join(' '));
  return counts;
}

/** Who is known by a hash alone is on the list by the hash, with the key that it is under. */
async function suppressPeople(request: PurgeRequest, { unifiedIds }: PeopleFound, context: Context): Promise<void> {
  const { suppressionFile: file, suppressionKey: key } = request;
  if (file === undefined || key === undefined) return;
  const { clock, signal } = context;
  for (const hashKey of new Set([undefined, ...unifiedIds.map((id) => id.hashKey)])) {
    const people = unifiedIds.filter((id) => id.hashKey === hashKey).map(({ text }) => text);
    if (people.length > 0 || hashKey === undefined) await suppress(file, each(people), key, { clock, signal, hashKey });
  }
}

async function* each(texts: readonly string[]): AsyncGenerator<string> {
  yield* texts;
}

function optionsOf({ lockWaitMs, spoolDir }: PurgeRequest, { env, clock, logger, signal }: Context): PlaceOptions {
  return { lockWaitMs, spoolDir, env, clock, logger, signal };
}
