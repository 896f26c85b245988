import type * as Http from 'node:http';
import { createRequire } from 'node:module';
import { Duplex } from 'node:stream';
import { current, type MachineProcess } from './process.ts';
import { type Channel, running, type Scheduler } from './scheduler.ts';

/*
 * Node's own HTTP client and server over connections in memory: every packet is an event of the simulation. What stands for
 * `node:http` in the program under test.
 */

const real: typeof Http = createRequire(import.meta.url)('node:http');

/** Servers of the simulation by port. */
const listening = new Map<number, { readonly server: Http.Server; readonly scheduler: Scheduler }>();
const PORT = 20_001;

const reset = (code = 'ECONNRESET') => Object.assign(new Error(`read ${code}`), { code, errno: -104, syscall: 'read' });

/** One end of a connection. */
export class MemorySocket extends Duplex {
  readonly remoteAddress = '127.0.0.1';
  connecting = false;
  readonly #scheduler: Scheduler;
  readonly #owner: MachineProcess | undefined;
  /** Messages on their way to the other end. */
  readonly #wire: Channel = [];
  #other: MemorySocket | undefined;
  #waiting: (() => void) | undefined;
  #isGone = false;

  constructor(scheduler: Scheduler, owner: MachineProcess | undefined) {
    super({ allowHalfOpen: true });
    this.#scheduler = scheduler;
    this.#owner = owner;
    owner?.sockets.add(this);
  }

  join(other: MemorySocket): void {
    this.#other = other;
  }

  override _read(): void {
    this.#other?.goOn();
  }

  goOn(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    try {
      this.#owner?.effect('send');
    } catch {
      return;
    }
    this.#send((other) => {
      if (this.#isGone || other.destroyed) return done(reset('EPIPE'));
      if (chunk.length === 0 || other.push(Buffer.from(chunk))) done();
      else this.#waiting = () => done();
    });
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#send((other) => {
      if (!other.destroyed) other.push(null);
      done();
    });
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#owner?.sockets.delete(this);
    this.goOn();
    if (!this.writableFinished) this.#send((other) => other.lose());
    done(error);
  }

  /** The other end is gone, in good order. */
  lose(): void {
    this.#isGone = true;
    this.goOn();
    if (!this.destroyed && !this.readableEnded) this.push(null);
  }

  resetAndDestroy(): this {
    this.#send((other) => {
      if (!other.destroyed) other.destroy(reset());
    });
    return this.destroy();
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  /** Its process died: the system closes what it had open. */
  abandon(): void {
    this.#send((other) => {
      if (!other.destroyed) other.destroy(reset());
    });
  }

  setTimeout = () => this;
  setNoDelay = () => this;
  setKeepAlive = () => this;
  ref = () => this;
  unref = () => this;

  #send(arrive: (other: MemorySocket) => void): void {
    const other = this.#other;
    if (other === undefined) return;
    this.#scheduler.pushInto(this.#wire, undefined, () => {
      if (other.#owner?.isDead !== true) running.run(other.#owner, () => arrive(other));
    });
  }
}

function connect(port: number): MemorySocket {
  const owner = current();
  const found = listening.get(port);
  const scheduler = found?.scheduler ?? owner?.scheduler;
  if (scheduler === undefined) throw new Error('no simulation');
  const client = new MemorySocket(scheduler, owner);
  client.connecting = true;
  if (found === undefined) {
    scheduler.push(owner, () => client.destroy(reset('ECONNREFUSED')));
    return client;
  }
  const server = new MemorySocket(scheduler, undefined);
  // The client may be killed before the server hears of the connection, and listens to its errors.
  server.on('error', () => {});
  client.join(server);
  server.join(client);
  scheduler.push(undefined, () => {
    found.server.emit('connection', server);
    scheduler.push(owner, () => {
      client.connecting = false;
      client.emit('connect');
    });
  });
  return client;
}

class Agent extends real.Agent {
  override createConnection(options: { readonly port?: number | string }): MemorySocket {
    return connect(Number(options.port));
  }
}

/** Servers that are made while this stands listen in the simulation of this scheduler. */
let scheduler: Scheduler | undefined;
export function serveIn(simulation: Scheduler): void {
  scheduler = simulation;
}

function createServer(options: Http.ServerOptions, listener: Http.RequestListener): Http.Server {
  const server = real.createServer(options, listener);
  const simulation = scheduler;
  if (simulation === undefined) return server;
  const port = PORT;
  const own = {
    listen(_port: number, _host: string, done: () => void) {
      listening.set(port, { server, scheduler: simulation });
      done();
      return server;
    },
    address: () => ({ port, address: '127.0.0.1', family: 'IPv4' }),
    close(done: () => void) {
      listening.delete(port);
      done();
      return server;
    },
    closeAllConnections() {},
  };
  return Object.assign(server, own);
}

/** Replaces `node:http`. */
export const simulatedHttp = { ...real, Agent, createServer };
