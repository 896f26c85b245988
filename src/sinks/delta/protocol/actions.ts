// This folder: the log of a Delta table by the protocol: entries, checkpoints, and the table that they add up to.

/** The protocol versions and features that readers and writers of a table must support. */
export interface Protocol {
  readonly minReaderVersion: number;
  readonly minWriterVersion: number;
  readonly readerFeatures?: readonly string[] | null;
  readonly writerFeatures?: readonly string[] | null;
}

export interface MetaData {
  readonly id: string;
  readonly name?: string | null;
  readonly format: { readonly provider: 'parquet'; readonly options: Readonly<Record<string, string>> };
  readonly schemaString: string;
  readonly partitionColumns: readonly string[];
  readonly createdTime?: number | null;
  readonly configuration: Readonly<Record<string, string>>;
}

/** A data file that is part of the table. */
export interface Add {
  /** From the table's folder, percent-encoded. */
  readonly path: string;
  readonly partitionValues: Readonly<Record<string, string | null>>;
  readonly size: number;
  readonly modificationTime?: number | null;
  /** False where the rows were in the table before, in other files. */
  readonly dataChange: boolean;
  /** JSON. */
  readonly stats?: string | null;
  readonly tags?: Readonly<Record<string, string | null>> | null;
}

/** A data file that is no longer part of the table; its bytes stay for readers of older versions. */
export interface Remove {
  readonly path: string;
  readonly deletionTimestamp?: number | null;
  readonly dataChange?: boolean | null;
  readonly extendedFileMetadata?: boolean | null;
  readonly partitionValues?: Readonly<Record<string, string | null>> | null;
  readonly size?: number | null;
  readonly tags?: Readonly<Record<string, string | null>> | null;
}

export interface Txn {
  readonly appId: string;
  readonly version: number;
  readonly lastUpdated?: number | null;
}

interface DomainMetadata {
  readonly domain: string;
  readonly configuration: string;
  readonly removed: boolean;
}

/** One line of a log entry, one row of a checkpoint. */
export type Action =
  | { readonly protocol: Protocol }
  | { readonly metaData: MetaData }
  | { readonly add: Add }
  | { readonly remove: Remove }
  | { readonly txn: Txn }
  | { readonly domainMetadata: DomainMetadata }
  | { readonly commitInfo: Readonly<Record<string, unknown>> };
