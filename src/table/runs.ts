/** One run that loaded a place, recorded when it ends. */
export interface RunRecord {
  /** Instants: ISO, UTC. */
  readonly began: string;
  readonly ended: string;
  readonly exitCode: number;
  /** The sentence of a failure. */
  readonly cause: string | null;
  /** Of the program. */
  readonly version: string;
  readonly rows: number;
  readonly days: number;
  readonly exports: number;
  readonly bytes: number;
}
