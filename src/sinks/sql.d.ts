/** A file of SQL as text. */
declare module '*.sql' {
  const sql: string;
  export default sql;
}
