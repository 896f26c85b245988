/** The bytes of a file of WebAssembly. */
declare module '*.wasm' {
  const bytes: Uint8Array;
  export default bytes;
}
