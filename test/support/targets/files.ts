import { DELTA } from '../../../src/targets/delta/log.ts';
import { readFilesState } from '../../../src/targets/files/file-table.ts';
import type { FilesFormat, OpenFilesOptions } from '../../../src/targets/files/files-format.ts';
import { type FilesSinkOptions, openFilesSink } from '../../../src/targets/files/load.ts';
import { peopleInFiles, purgeFiles, tryPurgeFiles } from '../../../src/targets/files/purge.ts';
import { reportFiles } from '../../../src/targets/files/report.ts';
import { compactFiles } from '../../../src/targets/files/rewrite.ts';
import { verifyFiles } from '../../../src/targets/files/verify.ts';
import { PARQUET } from '../../../src/targets/parquet/log.ts';
import type { PeopleQuery, PurgeOptions } from '../../../src/targets/people.ts';

type Found = PurgeOptions['onFound'];

/** The operations of a target that keeps Parquet files on a place, as functions of options that may name a storage. */
export const placeOf = (format: FilesFormat) => ({
  open: (options: FilesSinkOptions) => openFilesSink(format, options),
  state: (options: OpenFilesOptions) => readFilesState(format, options),
  verify: (options: OpenFilesOptions) => verifyFiles(format, options),
  compact: (options: OpenFilesOptions) => compactFiles(format, options),
  report: (options: OpenFilesOptions) => reportFiles(format, options),
  people: (options: OpenFilesOptions, query: PeopleQuery) => peopleInFiles(format, options, query),
  tryPurge: (options: OpenFilesOptions, query: PeopleQuery) => tryPurgeFiles(format, options, query),
  purge: (options: OpenFilesOptions, query: PeopleQuery, onFound: Found = async () => undefined) =>
    purgeFiles(format, { ...options, onFound }, query),
});

export const {
  open: openParquetSink,
  verify: verifyParquet,
  compact: compactParquet,
  tryPurge: tryPurgeParquet,
  purge: purgeParquet,
} = placeOf(PARQUET);

export const {
  open: openDeltaSink,
  state: readDeltaState,
  verify: verifyDelta,
  compact: compactDelta,
  report: reportDelta,
  tryPurge: tryPurgeDelta,
  purge: purgeDelta,
} = placeOf(DELTA);
