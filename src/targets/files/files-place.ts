import type { Engine } from '../../engine/session/engine.ts';
import type { RunFolder } from '../../fs/run-folder.ts';
import type { Storage } from '../../storage/storage.ts';
import type { OpenOptions, PlaceOptions } from '../contract.ts';
import type { FileLayout } from './file-layout.ts';

export type FilesOptions = PlaceOptions & Partial<Pick<OpenOptions, 'loadsProfiles' | 'retentionMs'>>;

/** `read` changes nothing; `rewrite` needs a place that was loaded; `load` makes one that is missing. */
export type OpenMode = 'read' | 'rewrite' | 'load';

/** An open place. What it holds is a `PlaceVersion`, which its format reads. */
export interface FilesPlace {
  readonly layout: FileLayout;
  readonly options: FilesOptions;
  readonly mode: OpenMode;
  readonly storage: Storage;
  readonly engine: Engine;
  /** The folder of this run on this machine. */
  readonly run: RunFolder;
  /** The local copies of files of a bucket, by the path of the file. */
  readonly copies: Map<string, string>;
}
