export function validatorModule(path: string): string;
