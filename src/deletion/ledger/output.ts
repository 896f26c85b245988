import { type FileHandle, open } from 'node:fs/promises';
import { log } from '../../airbyte/messages.ts';
import type { MessageWriter } from '../../airbyte/writer.ts';
import { syncFolder } from '../../fs/atomic-file.ts';

/** Writes sealed lines. `write` resolves when they are as durable as this output can make them. */
export interface LedgerOutput {
  write(lines: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** A file: on disk when `write` returns. */
export class FileOutput implements LedgerOutput {
  readonly #file: FileHandle;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** A new file of mode 0600 whose name is on disk as well when this returns. */
  static async create(path: string, folder: string): Promise<FileOutput> {
    const file = await open(path, 'ax', 0o600);
    await syncFolder(folder);
    return new FileOutput(file);
  }

  async write(lines: readonly string[]): Promise<void> {
    await this.#file.writeFile(`${lines.join('\n')}\n`);
    await this.#file.datasync();
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

/** LOG messages, for a container without persistent files: written to the platform's pipe when `write` resolves. */
export class LogOutput implements LedgerOutput {
  readonly #writer: MessageWriter;

  constructor(writer: MessageWriter) {
    this.#writer = writer;
  }

  async write(lines: readonly string[]): Promise<void> {
    for (const line of lines) await this.#writer.write(log('INFO', line, { event: 'ledger.line' }));
    await this.#writer.drain();
  }

  async close(): Promise<void> {}
}
