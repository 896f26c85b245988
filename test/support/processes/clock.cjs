// Preloaded into a process (node -r): CLOCK_AT=ms is what its clock shows when it starts. Timers are those of the machine.
const ahead = Number(process.env.CLOCK_AT) - Date.now();
const Machine = Date;
globalThis.Date = class extends Machine {
  constructor(...given) {
    super(...(given.length === 0 ? [Machine.now() + ahead] : given));
  }
  static now() {
    return Machine.now() + ahead;
  }
};
