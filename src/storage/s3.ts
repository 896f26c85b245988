import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { GetObjectCommandOutput } from '@aws-sdk/client-s3';
import { systemClock } from '../base/clock.ts';
import { configError, transientError } from '../base/errors.ts';
import { makeFolders } from '../fs/folders.ts';
import { PRIVATE_FILE_MODE } from '../fs/permissions.ts';
import { type BucketAccess, toStoredObject } from './s3-client.ts';
import { deleteObjects, eraseVersions } from './s3-erase.ts';
import {
  isBrokenBody,
  isTransient,
  S3_STATUS,
  s3AnswerOf,
  s3ErrorNameOf,
  s3StatusOf,
  storeError,
} from './s3-failures.ts';
import { type ErasePredicate, listAll, PROBE_FOLDER, type Storage, type StoredObject } from './storage.ts';

/** Pauses (ms) between attempts at requests that the SDK does not attempt again. */
const PAUSES_MS = [500, 1_000, 2_000, 4_000];
/** Maximum size of an object that one request may send: the limit of S3. */
const MAX_OBJECT_BYTES = 5 * 2 ** 30;
/** Time (ms) for a write that begins after the run was stopped: its process has seconds left. */
const STOPPED_WRITE_MS = 2_000;

/** A bucket, accessed by the official SDK with its credential chain and its retries. */
export class S3Storage implements Storage {
  readonly address: string;
  readonly workFolder = undefined;
  readonly #access: BucketAccess;
  readonly #signal: AbortSignal;

  constructor(access: BucketAccess) {
    this.address = access.address;
    this.#access = access;
    this.#signal = access.sendOptions.abortSignal;
    // Every request under way adds listeners; Node would otherwise warn of a leak.
    setMaxListeners(0, this.#signal);
  }

  read(path: string): Promise<Buffer | undefined> {
    return this.#retryRead(async () => {
      const object = await this.#get(path);
      return object?.Body && Buffer.from(await object.Body.transformToByteArray());
    });
  }

  async *list(folder: string, after = ''): AsyncGenerator<StoredObject, void, undefined> {
    const { paginateListObjectsV2 } = await import('@aws-sdk/client-s3');
    const { client, bucket, sendOptions } = this.#access;
    const Prefix = this.#key(`${folder}/`);
    const input = { Bucket: bucket, Prefix, ...(after !== '' && { StartAfter: this.#key(after) }) };
    try {
      for await (const { Contents = [] } of paginateListObjectsV2({ client }, input, sendOptions)) {
        for (const { Key, LastModified } of Contents) {
          if (Key?.startsWith(Prefix) !== true || Key.endsWith('/')) continue;
          yield toStoredObject(this.#access, Key, LastModified);
        }
      }
    } catch (error) {
      throw storeError(error, this.address, this.#signal);
    }
  }

  create(path: string, text: string): Promise<boolean> {
    const { client, sendOptions } = this.#access;
    const object = { ...this.#objectAt(path), Body: Buffer.from(text), IfNoneMatch: '*' };
    return this.#withStoreErrors(async () => {
      try {
        await this.#retry(
          (error) => s3StatusOf(error) === S3_STATUS.conflict,
          () => client.putObject(object, sendOptions),
        );
        return true;
      } catch (error) {
        // An object with this very text is our own: an earlier attempt created it, and its answer was lost.
        if (s3StatusOf(error) === S3_STATUS.exists) return (await this.read(path))?.toString('utf8') === text;
        if (s3StatusOf(error) !== S3_STATUS.notImplemented) throw error;
        throw configError(
          `${this.address} refused to create an object only if it is absent (If-None-Match: *), which a commit needs.` +
            ` It says ${s3AnswerOf(error)}. If it does not know such writes, use a store that does.`,
          { cause: error },
        );
      }
    });
  }

  write(path: string, text: string): Promise<void> {
    // A run that was stopped still records how it ended.
    const abortSignal = this.#signal.aborted ? AbortSignal.timeout(STOPPED_WRITE_MS) : this.#signal;
    const object = { ...this.#objectAt(path), Body: Buffer.from(text) };
    return this.#withStoreErrors(async () => {
      await this.#access.client.putObject(object, { abortSignal });
    });
  }

  moveIn(localPath: string, path: string): Promise<void> {
    return this.#withStoreErrors(async () => {
      const { size } = await stat(localPath);
      if (size > MAX_OBJECT_BYTES) {
        const remedy = 'drop columns (columns_drop), or load into a folder on a disk';
        throw configError(
          `${this.address}/${path} would have ${size} bytes, and a bucket takes at most 5 GiB: ${remedy}.`,
        );
      }
      await this.#retry(isTransient, () => this.#sendFile(localPath, path, size));
      await rm(localPath, { force: true });
    });
  }

  localFile(path: string, copyPath: string): Promise<string> {
    return this.#retryRead(async () => {
      await rm(copyPath, { force: true });
      await makeFolders(dirname(copyPath));
      const object = await this.#get(path);
      if (object === undefined) throw this.#goneError(path);
      const file = createWriteStream(copyPath, { flags: 'wx', mode: PRIVATE_FILE_MODE });
      await pipeline(object.Body as Readable, file, { signal: this.#signal });
      return copyPath;
    });
  }

  remove(paths: readonly string[]): Promise<void> {
    const objects = paths.map((path) => ({ Key: this.#key(path) }));
    return this.#withStoreErrors(() => deleteObjects(this.#access, objects));
  }

  async erase(folder: string, shouldErase: ErasePredicate): Promise<void> {
    const objects = (await listAll(this, folder)).filter(shouldErase);
    // For a store without versions. In a bucket with versions it adds delete markers, which go with them below.
    await this.remove(objects.map(({ path }) => path));
    const prefix = this.#key(`${folder}/`);
    await this.#withStoreErrors(() => eraseVersions(this.#access, prefix, shouldErase));
  }

  /** Rights hold for the whole prefix: an object to try them on stands for all. */
  async checkErasable(): Promise<void> {
    const folder = `${PROBE_FOLDER}/${randomUUID()}`;
    await this.write(`${folder}/probe`, '');
    await this.erase(folder, () => true);
  }

  close(): void {
    this.#access.client.destroy();
  }

  #key(path: string): string {
    return `${this.#access.prefix}${path}`;
  }

  #objectAt(path: string) {
    return { Bucket: this.#access.bucket, Key: this.#key(path) };
  }

  /** An object whose body was not read yet; undefined if there is none. */
  async #get(path: string): Promise<GetObjectCommandOutput | undefined> {
    const { client, sendOptions } = this.#access;
    try {
      return await client.getObject(this.#objectAt(path), sendOptions);
    } catch (error) {
      if (s3ErrorNameOf(error) === 'NoSuchKey') return undefined;
      throw error;
    }
  }

  /** Makes one attempt at sending a file, and holds no more than a piece of it: the SDK sends no stream again. */
  async #sendFile(localPath: string, path: string, size: number): Promise<void> {
    const { client, sendOptions } = this.#access;
    const Body = createReadStream(localPath);
    // The SDK would wait for the bytes of a file that cannot be read.
    const unreadable = new Promise<never>((_, reject) => Body.on('error', reject));
    try {
      const sending = client.putObject({ ...this.#objectAt(path), Body, ContentLength: size }, sendOptions);
      await Promise.race([sending, unreadable]);
    } finally {
      Body.destroy();
    }
  }

  /** Attempts a read again whose body broke. */
  #retryRead<T>(work: () => Promise<T>): Promise<T> {
    return this.#withStoreErrors(() => this.#retry(isBrokenBody, work));
  }

  /** Settles as `work` does at its last attempt. Another one follows on an error that is worth it. */
  async #retry<T>(isWorthRetry: (error: unknown) => boolean, work: () => Promise<T>): Promise<T> {
    for (const pause of PAUSES_MS) {
      try {
        return await work();
      } catch (error) {
        if (this.#signal.aborted || !isWorthRetry(error)) throw error;
        await systemClock.sleep(pause, this.#signal);
      }
    }
    return work();
  }

  #goneError(path: string) {
    return transientError(`${this.address}/${path} is gone: another run removed it. Try again.`);
  }

  #withStoreErrors<T>(work: () => Promise<T>): Promise<T> {
    return work().catch((error) => {
      throw storeError(error, this.address, this.#signal);
    });
  }
}
