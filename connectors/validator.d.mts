import type { Plugin } from 'esbuild';

export function validatorModule(path: string): string;
export const validators: Plugin;
