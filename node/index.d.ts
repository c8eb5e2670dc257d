import type { Firestore, Transaction, WriteBatch } from '@google-cloud/firestore';

/** What the effect is written with. Both kinds commit their writes together, or none of them. */
export type Writer = Transaction | WriteBatch;

export interface CompleteOptions {
  /** Replayed to duplicates, beside status and body. By default a content type of JSON. */
  headers?: Record<string, string | string[]>;
  /** That of the store's URL; by default `semel`. */
  prefix?: string;
}

export interface OnceOptions {
  /** For how long the name is remembered; by default 7 days. */
  retentionMs?: number;
  /** That of the store's URL; by default `semel`. */
  prefix?: string;
}

export interface BatchOptions {
  /** For how long a refused batch is tried again; by default 30 seconds. */
  withinMs?: number;
}

/**
 * Records the success of a run in the transaction or batch that makes its writes. `key` and `fence` are the headers
 * `Semel-Key` and `Semel-Fence` of a gate whose route says `completes = "handler"`. Status, body and headers are what
 * every duplicate hears; a body that does not fit into a document is not kept.
 *
 * Await it after the last read and before the first write: it reads.
 *
 * @throws {Stale} when the run was overtaken, {@link Already} when it is completed: let them leave the transaction, so
 * that nothing is written.
 */
export function complete(
  writer: Writer,
  key: string,
  fence: number | string,
  status?: number,
  body?: string | Uint8Array,
  options?: CompleteOptions,
): Promise<void>;

/**
 * True once per name, for code without a gate: make your writes in the same transaction or batch, and none when it is
 * false. False says that they were made: by another call, or by this very one if the answer to its Commit was lost. It
 * reads, so await it before the first write.
 */
export function once(writer: Writer, name: string, options?: OnceOptions): Promise<boolean>;

/**
 * Calls `fill` with a new batch, commits what it wrote, and gives back what it returned. When somebody else has written
 * first, it is called again, from its reads on.
 *
 * A batch leaves no locks behind, and guards only what it writes: give every write a condition, by `batch.create` or by
 * `batch.update(ref, fields, { lastUpdateTime: snapshot.updateTime })`. `fill` may run several times: let it do nothing
 * but read and fill the batch.
 */
export function runInBatch<T>(
  db: Firestore,
  fill: (batch: WriteBatch) => T | Promise<T>,
  options?: BatchOptions,
): Promise<T>;

/** Another run, or an operator, owns this work now: nothing may be written. */
export class Stale extends Error {}

/**
 * This very run is completed already: an earlier commit of it was written, though its answer may have been lost. Write
 * nothing more. Behind a gate the sender hears what was stored, whatever the handler answers now.
 */
export class Already extends Error {}
