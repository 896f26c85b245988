/** A function made of a schema when the program is bundled (connectors/validator.mjs). */
declare module '*.validator' {
  const validator: import('./validator.ts').Validator;
  export default validator;
}
