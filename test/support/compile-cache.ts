/**
 * The variable that names the cache of compiled code of this test run (global-setup.ts), for a process that does not inherit
 * this environment. Node ignores a cache that it cannot read or write.
 */
export function compileCache(): Readonly<Record<string, string>> {
  const directory = process.env['NODE_COMPILE_CACHE']
  return directory === undefined ? {} : { NODE_COMPILE_CACHE: directory }
}
