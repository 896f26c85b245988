/** The bytes of a file of WebAssembly in base64: each image has one bundled file. */
declare module '*.wasm' {
  const bytes: string;
  export default bytes;
}
