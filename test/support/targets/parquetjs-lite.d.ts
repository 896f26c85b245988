declare module 'parquetjs-lite' {
  export const ParquetReader: {
    openFile(path: string): Promise<{
      getCursor(columns?: readonly (readonly string[])[]): { next(): Promise<unknown> };
      close(): Promise<void>;
    }>;
  };
}
