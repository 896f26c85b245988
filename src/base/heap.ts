import { setFlagsFromString } from 'node:v8';

/**
 * Lets the heap grow to five times its used part before V8 collects all garbage. V8 counts received bytes as growth of
 * the heap. The heap is small here (12 MB), so V8 collected it 35 times while 300 MB arrived. That took a tenth of the
 * processor time of a load (Node 20). Only programs call it, not the library, since it concerns the whole process.
 */
export const letHeapGrow = (): void => setFlagsFromString('--heap-growing-percent=400');
