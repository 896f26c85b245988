// This folder: the embedded service, which shares no code with its client: its operations on loopback, with made-up
// events and profiles, for the demo and the command `simulate`.

import { type Clock, systemClock } from '../base/clock.ts';
import { parseScenario, type Scenario } from './scenario.ts';
import { listen } from './server.ts';
import { Service } from './service.ts';

export interface SimulatorOptions {
  /** 0, the default, takes a free port. */
  readonly port?: number;
  /** Keys of schemas/scenario.json. */
  readonly scenario?: unknown;
  readonly clock?: Clock;
}

export interface Simulator {
  readonly url: string;
  readonly port: number;
  readonly scenario: Scenario;
  close(): Promise<void>;
}

/** Starts the embedded service on 127.0.0.1. Throws a configuration error if the scenario or the port is unusable. */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const { port = 0, clock = systemClock } = options;
  const scenario = parseScenario(options.scenario ?? {});
  return { ...(await listen(new Service(scenario, clock), port)), scenario };
}
